package model

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestPage compares the tables of docs/internals/model.md with the worlds and rules of this
// package.
func TestPage(t *testing.T) {
	t.Parallel()
	var worlds []string
	for _, w := range sound(0) {
		worlds = append(worlds, w.Name)
	}
	sameLines(t, "worlds", column(t, "## The worlds", 1), worlds)

	names, text := ruleNames()
	listed := strings.Split(strings.Join(column(t, "## The rules", 2), ", "), ", ")
	for i, name := range listed {
		listed[i] = strings.Trim(name, "`")
	}
	// A rule that is only missed together with another one has two lines.
	slices.Sort(listed)
	slices.Sort(names)
	sameLines(t, "rules", slices.Compact(listed), names)

	page := strings.Join(column(t, "## The rules", 1), "\n")
	for name, sentence := range text {
		if !strings.Contains(page, sentence) {
			t.Errorf("docs/internals/model.md does not say of rule %s: %s", name, sentence)
		}
	}
}

// statesOnPage returns the number of states of a world according to docs/internals/model.md.
func statesOnPage(t *testing.T, world string) int {
	t.Helper()
	at := slices.Index(column(t, "## The worlds", 1), world)
	if at < 0 {
		t.Fatalf("docs/internals/model.md does not list the world %q", world)
	}
	states, err := strconv.Atoi(strings.ReplaceAll(column(t, "## The worlds", 4)[at], ",", ""))
	if err != nil {
		t.Fatalf("docs/internals/model.md, world %q: %v", world, err)
	}

	return states
}

// column returns one column of the tables in a section of docs/internals/model.md, without their
// heads.
func column(t *testing.T, section string, number int) (cells []string) {
	t.Helper()
	page, err := os.ReadFile("../../docs/internals/model.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, found := strings.Cut(string(page), section+"\n")
	if !found {
		t.Fatalf("docs/internals/model.md has no section %q", section)
	}

	text, _, _ = strings.Cut(text, "\n## ")

	isHead := true
	for line := range strings.Lines(text) {
		switch row := strings.Split(line, "|"); {
		case !strings.HasPrefix(line, "|"):
			isHead = true
		case strings.HasPrefix(line, "|---"):
			isHead = false
		case !isHead && number < len(row):
			cells = append(cells, strings.TrimSpace(row[number]))
		}
	}

	return cells
}

func sameLines(t *testing.T, what string, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("docs/internals/model.md lists the %s\n%q\nwant\n%q", what, got, want)
	}
}
