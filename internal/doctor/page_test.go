package doctor

import (
	"os"
	"regexp"
	"testing"
	"unicode"
)

// TestChineseOfThePage: the web console has Chinese texts for exactly the existing checks.
func TestChineseOfThePage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../page/src/zh-doctor.ts")
	if err != nil {
		t.Fatal(err)
	}

	said := map[string][]string{}
	row := regexp.MustCompile(`(?m)^  '?([a-z-]+)'?: \['(.+)', '(.+)', '(.+)'\],$`)
	for _, line := range row.FindAllStringSubmatch(string(page), -1) {
		said[line[1]] = line[2:]
	}

	for _, c := range checks {
		texts := said[c.id]
		if texts == nil {
			t.Errorf("page/src/zh-doctor.ts has no Chinese text for the check %s", c.id)
		}
		for _, text := range texts {
			han := 0
			for _, r := range text {
				if unicode.Is(unicode.Han, r) {
					han++
				}
			}
			if han < 4 {
				t.Errorf("%s: %q is hardly Chinese", c.id, text)
			}
		}
		delete(said, c.id)
	}

	for id := range said {
		t.Errorf("page/src/zh-doctor.ts has a text for %q, which is no check", id)
	}
}

// TestChineseOfCodes: the web console has a Chinese text for each code of a finding, and no other.
func TestChineseOfCodes(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../page/src/zh-doctor.ts")
	if err != nil {
		t.Fatal(err)
	}
	said := map[string]bool{}
	for _, line := range regexp.MustCompile(`(?m)^  ([a-z_]+): '(.*\p{Han}{2}.*)',$`).FindAllStringSubmatch(string(page), -1) {
		said[line[1]] = true
	}
	for _, c := range codes {
		if !said[string(c.code)] {
			t.Errorf("page/src/zh-doctor.ts has no Chinese text for the code %s", c.code)
		}
		delete(said, string(c.code))
	}
	for code := range said {
		t.Errorf("page/src/zh-doctor.ts has a text for %q, which is no code", code)
	}
}
