package doctor

import (
	"os"
	"regexp"
	"slices"
	"testing"
)

// TestPage: docs/doctor.md lists exactly the existing checks.
func TestPage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/doctor.md")
	if err != nil {
		t.Fatal(err)
	}

	var told, want []string
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z-]+)` \\| [^|]+ \\|$").FindAllStringSubmatch(string(page),
		-1) {
		told = append(told, row[1])
	}

	for _, c := range checks {
		want = append(want, c.id)
		if slices.Contains(want[:len(want)-1], c.id) {
			t.Errorf("two checks are called %s", c.id)
		}
	}

	if !slices.Equal(told, want) {
		t.Errorf("docs/doctor.md tells of\n%v\nthere are\n%v", told, want)
	}
}
