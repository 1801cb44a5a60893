package cli

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// TestPageOfSettings compares docs/settings.md with the flags of serve. Update it with go test
// ./cli -run TestPageOfSettings -update.
func TestPageOfSettings(t *testing.T) {
	t.Parallel()

	const file, begin = "../docs/settings.md", "<!-- from the flags: go test ./cli -run TestPageOfSettings -update -->\n"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}

	before, _, ok := strings.Cut(string(text), begin)
	if !ok {
		t.Fatalf("%s has lost its mark %q", file, begin)
	}

	want := before + begin + pageOfSettings(t)
	if *update {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if string(text) != want {
		t.Fatalf("%s differs from the flags; to write it again:  go test ./cli -run TestPageOfSettings -update", file)
	}
}

func pageOfSettings(t *testing.T) string {
	t.Helper()

	serve, _, err := newTestRoot().Find([]string{"serve"})
	if err != nil {
		t.Fatal(err)
	}

	var b strings.Builder
	b.WriteString("\n| flag | meaning |\n|---|---|\n")
	serve.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" || f.Name == checkFlag {
			return
		}
		kind, usage := pflag.UnquoteUsage(f)
		meaning := strings.ReplaceAll(strings.Join(strings.Fields(usage), " "), "|", "\\|")
		if def := f.DefValue; def != "" && def != "false" && def != "[]" && !strings.Contains(usage, "(default") {
			meaning += fmt.Sprintf(" (default %s)", def)
		}
		if kind != "strings" && kind != "stringArray" {
			kind = "" // its description says it
		}

		// The page says once how to give several values, and how variables are named.
		meaning = strings.NewReplacer("; may be repeated, or separated by commas", "", "; may be repeated", "",
			" ("+envName(f.Name)+")", "", "*", `\*`, "<", `\<`).Replace(meaning)
		fmt.Fprintf(&b, "| %s | %s |\n", strings.TrimSpace("`--"+f.Name+"` "+kind), meaning)
	})

	return b.String()
}
