package cli

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// everywhere lists flags that most commands share. The page describes them once.
var everywhere = []string{"server", "token", "ca-cert", "context", "help"}

// TestPageOfCommands compares the part of docs/cli.md between its two marks with the help of the
// commands. Update it with go test ./cli -run TestPageOfCommands -update.
func TestPageOfCommands(t *testing.T) {
	t.Parallel()

	const file, begin, end = "../docs/cli.md", "<!-- from the commands: go test ./cli -run TestPageOfCommands -update -->\n", "<!-- until here -->\n"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}

	before, rest, ok := strings.Cut(string(text), begin)
	_, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		t.Fatalf("%s has lost its marks: want %q and %q", file, begin, end)
	}

	want := before + begin + pageOfCommands(newTestRoot()) + end + after
	if *update {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if string(text) != want {
		is, wants := strings.Split(string(text), "\n"), strings.Split(want, "\n")
		for i := range min(len(is), len(wants)) {
			if is[i] != wants[i] {
				t.Fatalf("%s:%d says %q, and the commands say %q; to write it anew:  go test ./cli -run TestPageOfCommands -update", file, i+1, is[i], wants[i])
			}
		}
		t.Fatalf("%s has %d lines, want %d; to write it anew:  go test ./cli -run TestPageOfCommands -update", file,
			len(is), len(wants))
	}
}

func pageOfCommands(root *cobra.Command) string {
	var b strings.Builder
	for _, group := range root.Groups() {
		fmt.Fprintf(&b, "\n## %s\n", strings.TrimSuffix(group.Title, ":"))
		for _, cmd := range root.Commands() {
			if cmd.GroupID == group.ID && !cmd.Hidden {
				sectionOf(&b, cmd)
			}
		}
	}

	b.WriteString("\n## Others\n")
	for _, cmd := range root.Commands() {
		if cmd.GroupID == "" && !cmd.Hidden && cmd.Runnable() {
			sectionOf(&b, cmd)
		}
	}

	for _, topic := range topics() {
		title, text, _ := strings.Cut(topic.Long, ":\n")
		fmt.Fprintf(&b, "\n## %s\n\n", title)
		block(&b, strings.Trim(text, "\n"))
	}

	return b.String()
}

// sectionOf writes the help of a command and of its subcommands.
func sectionOf(b *strings.Builder, cmd *cobra.Command) {
	if cmd.Hidden {
		return
	}
	if cmd.Runnable() && (!cmd.HasSubCommands() || cmd.Example != "") {
		path := strings.TrimPrefix(cmd.CommandPath(), "go-crontab ")
		fmt.Fprintf(b, "\n### %s\n\n%s.\n\n", path, cmd.Short)
		lines := []string{
			"go-crontab " + strings.TrimSuffix(path, cmd.Name()) + strings.TrimSuffix(cmd.Use, " [flags]"),
		}
		own := pflag.NewFlagSet("", pflag.ContinueOnError)
		own.SortFlags = cmd.Flags().SortFlags
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if cmd.PersistentFlags().Lookup(f.Name) == f { // --timezone is described at the top of the page
				return
			}
			for _, name := range everywhere {
				if f.Name == name {
					return
				}
			}
			own.AddFlag(f)
		})

		if cmd.Name() == "serve" {
			lines = append(lines, "", "flags: see docs/settings.md")
		} else if usages := strings.TrimRight(own.FlagUsages(), "\n"); usages != "" {
			lines = append(lines, "", usages)
		}
		if cmd.Example != "" {
			lines = append(lines, "", cmd.Example)
		}

		block(b, strings.Join(lines, "\n"))
	} else if cmd.HasSubCommands() {
		fmt.Fprintf(b, "\n### %s\n\n%s: see below.\n", cmd.Name(), cmd.Short)
	}

	for _, sub := range cmd.Commands() {
		sectionOf(b, sub)
	}
}

// block writes a fenced block without trailing spaces.
func block(b *strings.Builder, text string) {
	b.WriteString("```\n")
	for line := range strings.SplitSeq(text, "\n") {
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	b.WriteString("```\n")
}
