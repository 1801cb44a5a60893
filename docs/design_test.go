package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestTables: docs/internals/design.md names each table that a migration makes, and no other.
func TestTables(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../sql/migrations/*.sql")
	if err != nil {
		t.Fatal(err)
	}
	var made []string
	for _, file := range files {
		up, _, _ := strings.Cut(read(t, file), "-- +goose Down")
		for _, m := range regexp.MustCompile(`(?m)^CREATE TABLE (\w+)`).FindAllStringSubmatch(up, -1) {
			made = append(made, m[1])
		}
		for _, m := range regexp.MustCompile(`(?m)^DROP TABLE ([\w, ]+)`).FindAllStringSubmatch(up, -1) {
			for name := range strings.SplitSeq(m[1], ", ") {
				made = slices.DeleteFunc(made, func(s string) bool { return s == name })
			}
		}
	}
	if len(made) < 30 {
		t.Fatalf("found %d tables", len(made))
	}
	var named []string
	for line := range strings.Lines(section(t, "internals/design.md", "## Tables\n", "Beside these ")) {
		if _, cell, ok := strings.Cut(strings.TrimPrefix(line, "| "), " | "); ok {
			for entry := range strings.SplitSeq(cell, "·") {
				entry, _, _ = strings.Cut(entry, "(") // what it is
				named = append(named, coded(entry)...)
			}
		}
	}
	slices.Sort(made)
	slices.Sort(named)
	if !slices.Equal(named, made) {
		t.Errorf("docs/internals/design.md names\n%v\nand migrations make\n%v", named, made)
	}
}

// read returns the text of a file.
func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// section returns the part of a file between two texts.
func section(t *testing.T, file, after, before string) string {
	t.Helper()
	_, part, begins := strings.Cut(read(t, file), after)
	part, _, ends := strings.Cut(part, before)
	if !begins || !ends {
		t.Fatalf("%s has no part between %q and %q", file, after, before)
	}
	return part
}

// coded returns the words of a text that stand in code.
func coded(text string) (words []string) {
	for _, m := range regexp.MustCompile("`(\\w+)`").FindAllStringSubmatch(text, -1) {
		words = append(words, m[1])
	}
	return words
}
