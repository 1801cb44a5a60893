package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestReasonCodes: docs/internals/reasons.md lists each code of job/reason.go once, and the program uses each code.
func TestReasonCodes(t *testing.T) {
	t.Parallel()
	table := section(t, "internals/reasons.md", "\n| `reason_code` |", "\n\n")
	var told []string
	for _, row := range strings.Split(table, "\n")[2:] {
		told = append(told, coded(strings.Split(row, "|")[1])...)
	}

	source := read(t, "../job/reason.go")
	given := producers(t)
	var codes []string
	constant := regexp.MustCompile(`(?m)^\t// .+\.\n\t(Reason\w+) ReasonCode = "(\w+)"$`)
	for _, m := range constant.FindAllStringSubmatch(source, -1) {
		name, code := m[1], m[2]
		codes = append(codes, code)
		if len(code) > 32 {
			t.Errorf("%s has more than 32 characters", code)
		}
		if !regexp.MustCompile(`job\.` + name + `\b`).MatchString(given) {
			t.Errorf("nobody gives the code %s", code)
		}
	}

	if constants := strings.Count(source, "ReasonCode = "); constants != len(codes) {
		t.Errorf("%d constants, of which %d say in a line what happened", constants, len(codes))
	}
	slices.Sort(codes)
	slices.Sort(told)
	if !slices.Equal(codes, told) {
		t.Errorf("docs/internals/reasons.md has the codes\n%v\nand job/reason.go\n%v", told, codes)
	}
}

// producers returns the source of the packages that end runs.
func producers(t *testing.T) string {
	t.Helper()
	var source strings.Builder
	for _, dir := range []string{"schedule", "schedule/edit", "execute", "result"} {
		files, err := filepath.Glob(filepath.Join("..", dir, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatal(dir, len(files), err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			source.Write(text)
		}
	}
	return source.String()
}
