package protocol

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// page is docs/model.md.
func page(t *testing.T) string {
	text, err := os.ReadFile("../../docs/model.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestPage: docs/model.md has a line for each defence, hole and limit, and for each world; TestInvariantsHold compares its states.
func TestPage(t *testing.T) {
	t.Parallel()
	page := page(t)
	var lines []string
	for _, cs := range [][]Case{Defences(), Holes(), Limits()} {
		for _, c := range cs {
			lines = append(lines, line(c))
		}
	}
	for _, line := range lines {
		if !strings.Contains(page, line+"\n") {
			t.Errorf("docs/model.md has no line\n%s", line)
		}
	}
	for _, w := range Worlds(false) {
		if !strings.Contains(page, entryOf(&w)) {
			t.Errorf("docs/model.md has no line that begins\n%s", entryOf(&w))
		}
	}
	all := 0
	for _, states := range regexp.MustCompile(`(?m)^\|.* \| ([0-9,]+) \|$`).FindAllStringSubmatch(page, -1) {
		if n, _ := strconv.Atoi(strings.ReplaceAll(states[1], ",", "")); n > 1000 { // else it is of another table
			all += n
		}
	}
	if want := fmt.Sprintf("%.1f million in all", float64(all)/1e6); !strings.Contains(page, want) {
		t.Errorf("docs/model.md does not say that there are %s", want)
	}
	for i, v := range violations {
		if !strings.Contains(page, "* "+v+"\n") {
			t.Errorf("docs/model.md does not list what is number %d of what is looked for: %s", i, v)
		}
	}
}

// entryOf is how the line of a world begins.
func entryOf(w *World) string {
	rules := "as it is"
	if w.Rules != Code() {
		rules = "without the hole"
	}
	return fmt.Sprintf("| %s | %d | %s |", w.Name, w.Faults, rules)
}

// thousands writes a number as the page does.
func thousands(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// line is how the page says what a case breaks.
func line(c Case) string {
	r := Safe()
	c.Without(&r)
	rules := strings.Join(off(r), ", ")
	if rules == "" {
		rules = "–"
	}
	breaks := c.Breaks.String()
	if c.Breaks == 0 {
		breaks = "nothing: another defence does the same"
	}
	return fmt.Sprintf("| %s | %s | %s | %d |", c.Name, rules, breaks, c.World.Faults)
}
