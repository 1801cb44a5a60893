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

// TestWordsOfTheAPIAreSaid holds that the console has words for each type of a problem, and for all that the audit names.
func TestWordsOfTheAPIAreSaid(t *testing.T) {
	t.Parallel()
	problems := tableOf(t, "export const problems: Record<string, [title: string, advice: string]> = {", "\n};")
	for _, m := range wordsIn(t, "../api/problem.go", `= kind\{("[a-z-]+"),`) {
		if !regexp.MustCompile(`(?m)^  '?` + m + `'?: \[`).MatchString(problems) {
			t.Errorf("page/src/zh-server.ts has nothing for the problem %s", m)
		}
	}

	said, err := os.ReadFile("src/parts/audit.ts")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range wordsIn(t, "../api/audit.go", `(?s)audit(?:Kinds|Actions) += \[\]string\{(.+?)\}`) {
		if !regexp.MustCompile(`\b` + m + `: '`).Match(said) {
			t.Errorf("page/src/parts/audit.ts has no word for %s", m)
		}
	}
}

// wordsIn returns the quoted words in the places of a source file that a pattern finds.
func wordsIn(t *testing.T, file, places string) (words []string) {
	t.Helper()
	source, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, place := range regexp.MustCompile(places).FindAllStringSubmatch(string(source), -1) {
		for _, m := range regexp.MustCompile(`"([a-z_-]+)"`).FindAllStringSubmatch(place[1], -1) {
			words = append(words, m[1])
		}
	}
	if len(words) < 20 {
		t.Fatalf("%s has only %d words", file, len(words))
	}
	return words
}
