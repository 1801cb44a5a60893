package protocol

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestPage: docs/model.md has a line for each defence, hole and limit, and for each world.
func TestPage(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/model.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(text)
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
		if !strings.Contains(page, "| "+w.Name+" | "+fmt.Sprint(w.Faults)+" |") {
			t.Errorf("docs/model.md has no line for the world %q with %d faults", w.Name, w.Faults)
		}
	}
	for i, v := range violations {
		if !strings.Contains(page, "* "+v+"\n") {
			t.Errorf("docs/model.md does not list what is number %d of what is looked for: %s", i, v)
		}
	}
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
