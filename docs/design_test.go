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
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		up, _, _ := strings.Cut(string(text), "-- +goose Down")
		for _, m := range regexp.MustCompile(`(?m)^CREATE TABLE (\w+)`).FindAllStringSubmatch(up, -1) {
			made = append(made, m[1])
		}
		for _, m := range regexp.MustCompile(`(?m)^DROP TABLE ([\w, ]+)`).FindAllStringSubmatch(up, -1) {
			for name := range strings.SplitSeq(m[1], ", ") {
				made = slices.DeleteFunc(made, func(s string) bool { return s == name })
			}
		}
	}
	page, err := os.ReadFile("internals/design.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "## Tables\n")
	section, _, found := strings.Cut(section, "Beside these ")
	if !found || len(made) < 30 {
		t.Fatalf("found %d tables; the section is there: %v", len(made), found)
	}
	var named []string
	for line := range strings.Lines(section) {
		if _, cell, ok := strings.Cut(strings.TrimPrefix(line, "| "), " | "); ok {
			for entry := range strings.SplitSeq(cell, "·") {
				entry, _, _ = strings.Cut(entry, "(") // what it is
				for _, m := range regexp.MustCompile("`(\\w+)`").FindAllStringSubmatch(entry, -1) {
					named = append(named, m[1])
				}
			}
		}
	}
	slices.Sort(made)
	slices.Sort(named)
	if !slices.Equal(named, made) {
		t.Errorf("docs/internals/design.md names\n%v\nand migrations make\n%v", named, made)
	}
}
