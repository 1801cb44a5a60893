package page

import (
	"os"
	"regexp"
	"strconv"
	"testing"
	"unicode"

	"go-crontab/job/problem"
)

// TestProblemsAreSaidInChinese holds that the console has a Chinese sentence for each code, and none for another one, with
// no more values than there are.
func TestProblemsAreSaidInChinese(t *testing.T) {
	t.Parallel()
	file, err := os.ReadFile("src/zh-problems.ts")
	if err != nil {
		t.Fatal(err)
	}
	chinese := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^  ([a-z0-9_]+): '(.+)',$`).FindAllStringSubmatch(string(file), -1) {
		if chinese[m[1]] != "" {
			t.Errorf("src/zh-problems.ts has %s twice", m[1])
		}
		chinese[m[1]] = m[2]
	}

	known := map[string]bool{}
	for _, s := range problem.All() {
		known[s.Code()] = true
		text := chinese[s.Code()]
		han := 0
		for _, r := range text {
			if unicode.Is(unicode.Han, r) {
				han++
			}
		}
		if han < 2 {
			t.Errorf("src/zh-problems.ts says %q for %s: %s", text, s.Code(), s)
		}
		for _, m := range regexp.MustCompile(`\$(\d)`).FindAllStringSubmatch(text, -1) {
			if n, _ := strconv.Atoi(m[1]); n < 1 || n > len(s.Verbs()) {
				t.Errorf("%s: the Chinese has %s, and there are %d values", s.Code(), m[0], len(s.Verbs()))
			}
		}
	}
	for code := range chinese {
		if !known[code] {
			t.Errorf("src/zh-problems.ts has a sentence for %q, which is no code", code)
		}
	}
}
