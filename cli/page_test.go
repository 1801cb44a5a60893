package cli

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

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
	shared := sharedFlags(root)
	b.WriteString("\n## Shared flags\n\nMany commands have some of these. They are only named below, after \"Also\".\n\n")
	block(&b, strings.TrimRight(shared.FlagUsages(), "\n"))

	for _, group := range root.Groups() {
		fmt.Fprintf(&b, "\n## %s\n", strings.TrimSuffix(group.Title, ":"))
		for _, cmd := range root.Commands() {
			if cmd.GroupID == group.ID && !cmd.Hidden {
				sectionOf(&b, cmd, shared)
			}
		}
	}

	b.WriteString("\n## Others\n")
	for _, cmd := range root.Commands() {
		if cmd.GroupID == "" && !cmd.Hidden && cmd.Runnable() {
			sectionOf(&b, cmd, shared)
		}
	}

	for _, topic := range topics() {
		title, text, _ := strings.Cut(topic.Long, ":\n")
		text, _, _ = strings.Cut(text, "\nVariables of serve:") // docs/settings.md has them
		text = strings.Replace(text, "flag of serve, see below", "flag of serve, see docs/settings.md", 1)
		fmt.Fprintf(&b, "\n## %s\n\n", title)
		block(&b, strings.Trim(text, "\n"))
	}

	return b.String()
}

// sharedFlags returns the flags that at least three commands have with the same description.
func sharedFlags(root *cobra.Command) *pflag.FlagSet {
	count := map[string]int{}
	shared := pflag.NewFlagSet("", pflag.ContinueOnError)
	var visit func(*cobra.Command)
	visit = func(cmd *cobra.Command) {
		if cmd.Hidden {
			return
		}
		flagsOf(cmd).VisitAll(func(f *pflag.Flag) {
			key := f.Name + " " + f.Usage
			count[key]++
			if count[key] == 3 && shared.Lookup(f.Name) == nil {
				shared.AddFlag(f)
			}
		})
		for _, sub := range cmd.Commands() {
			visit(sub)
		}
	}
	visit(root)
	return shared
}

// flagsOf returns the flags of a command without those that the top of the page describes.
func flagsOf(cmd *cobra.Command) *pflag.FlagSet {
	own := pflag.NewFlagSet("", pflag.ContinueOnError)
	own.SortFlags = cmd.Flags().SortFlags
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if cmd.PersistentFlags().Lookup(f.Name) != f && !slices.Contains(everywhere, f.Name) {
			own.AddFlag(f)
		}
	})
	return own
}

// sectionOf writes one section for a command and those of its subcommands that have none of their own.
func sectionOf(b *strings.Builder, cmd *cobra.Command, shared *pflag.FlagSet) {
	if cmd.Hidden {
		return
	}

	var described, parents []*cobra.Command
	if cmd.Runnable() && (!cmd.HasSubCommands() || cmd.Example != "") {
		described = append(described, cmd)
	}
	for _, sub := range cmd.Commands() {
		if sub.HasSubCommands() {
			parents = append(parents, sub)
		} else if !sub.Hidden && sub.Runnable() {
			described = append(described, sub)
		}
	}

	fmt.Fprintf(b, "\n### %s\n\n%s.\n", pathOf(cmd), cmd.Short)
	if len(described) > 1 {
		b.WriteString("\n")
		block(b, overview(described))
	}
	for _, c := range described {
		describe(b, c, shared, len(described) == 1)
	}

	for _, sub := range parents {
		sectionOf(b, sub, shared)
	}
}

func pathOf(cmd *cobra.Command) string {
	return strings.TrimPrefix(cmd.CommandPath(), "go-crontab ")
}

// overview lists commands in two columns.
func overview(cmds []*cobra.Command) string {
	width := 0
	for _, cmd := range cmds {
		width = max(width, utf8.RuneCountInString(shortUsage(cmd)))
	}

	var lines []string
	for _, cmd := range cmds {
		lines = append(lines, fmt.Sprintf("%-*s  %s", width, shortUsage(cmd), cmd.Short))
	}
	return strings.Join(lines, "\n")
}

// usageOf returns how to call a command.
func usageOf(cmd *cobra.Command) string {
	return "go-crontab " + strings.TrimSuffix(pathOf(cmd), cmd.Name()) + strings.TrimSuffix(cmd.Use, " [flags]")
}

// shortUsage is usageOf without the name of the program, and without flags.
func shortUsage(cmd *cobra.Command) string {
	if strings.Contains(cmd.Use, "-") {
		return pathOf(cmd)
	}
	return strings.TrimPrefix(usageOf(cmd), "go-crontab ")
}

// describe writes a command's usage, flags and examples, if they say more than its line in the overview. A flag
// whose description begins that of the shared flag is shared: some outputs have fewer formats.
func describe(b *strings.Builder, cmd *cobra.Command, shared *pflag.FlagSet, alone bool) {
	usage := usageOf(cmd)
	own := pflag.NewFlagSet("", pflag.ContinueOnError)
	own.SortFlags = flagsOf(cmd).SortFlags
	also := []string{}
	flagsOf(cmd).VisitAll(func(f *pflag.Flag) {
		if s := shared.Lookup(f.Name); s == nil || !strings.HasPrefix(s.Usage, f.Usage) {
			own.AddFlag(f)
		} else if f.Name != "output" { // nearly all commands have it
			also = append(also, "--"+f.Name)
		}
	})

	lines := []string{usage}
	switch pathOf(cmd) {
	case "serve":
		lines = append(lines, "  Flags: docs/settings.md")
	case "job add":
		lines = append(lines, "  Flags, for the fields in docs/jobs.md:", namesOfFlags(flagsOf(cmd)))
	default:
		if usages := strings.TrimRight(own.FlagUsages(), "\n"); usages != "" {
			lines = append(lines, usages)
		}
		if len(also) > 0 {
			lines = append(lines, "  Also "+strings.Join(also, " "))
		}
	}

	// One example without flags shows no more than the overview.
	obvious := !strings.ContainsAny(strings.TrimSpace(cmd.Example), "\n|<>") && !strings.Contains(cmd.Example, " -")
	if len(lines) == 1 && obvious && !alone {
		return
	}
	if strings.TrimSpace(cmd.Example) != usage {
		lines = append(lines, "", cmd.Example)
	}

	b.WriteString("\n")
	block(b, strings.Join(lines, "\n"))
}

// namesOfFlags lists flags in lines of up to 100 characters.
func namesOfFlags(flags *pflag.FlagSet) string {
	var text strings.Builder
	length := 0
	flags.VisitAll(func(f *pflag.Flag) {
		if length == 0 || length+len(f.Name) > 96 {
			text.WriteString("\n ")
			length = 1
		}
		text.WriteString(" --" + f.Name)
		length += len(" --" + f.Name)
	})
	return strings.TrimPrefix(text.String(), "\n")
}

// block writes a fenced block without trailing spaces.
func block(b *strings.Builder, text string) {
	b.WriteString("```\n")
	for line := range strings.SplitSeq(text, "\n") {
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	b.WriteString("```\n")
}
