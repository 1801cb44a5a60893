package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestSecurityTests: each test that docs/internals/security.md names is there, in the folder that it names.
func TestSecurityTests(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("internals/security.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(page), "## Which test shows it")
	if !found {
		t.Fatal("the section is gone")
	}
	numbers, named := 0, 0
	for line := range strings.Lines(section) {
		cells := strings.Split(line, "|")
		if len(cells) != 5 || !strings.Contains(cells[3], "`Test") {
			continue
		}
		if regexp.MustCompile(`^ S\d+ $`).MatchString(cells[1]) {
			numbers++
		}
		for part := range strings.SplitSeq(cells[3], ";") {
			words := regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(part, -1)
			folder := words[0][1]
			for _, w := range words[1:] {
				named++
				if !hasTest(t, filepath.Join("..", folder), w[1]) && !hasTest(t, filepath.Join("../internal", folder), w[1]) {
					t.Errorf("%s: there is no %s in %s", strings.TrimSpace(cells[1]+cells[2]), w[1], folder)
				}
			}
		}
	}
	if numbers < 16 || named < 50 {
		t.Errorf("only %d rows and %d tests were found", numbers, named)
	}
}

func hasTest(t *testing.T, folder, name string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "\nfunc "+name+"(t *testing.T) {") || strings.Contains(string(text), "\nfunc "+name+"(f *testing.F) {") {
			return true
		}
	}
	return false
}
