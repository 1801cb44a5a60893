package cli

import (
	"fmt"
	"os"
	"slices"
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
	shared := sharedFlags(root)
	b.WriteString("\n## Shared flags\n\nSeveral commands have these. Below, they are only named after \"Also\"; commands about " +
		"runs, alerts or files apply them to those.\n\n")
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

// sharedFlags returns the flags that at least two commands have with the same meaning, each with the description that
// is used most.
func sharedFlags(root *cobra.Command) *pflag.FlagSet {
	type use struct {
		flag  *pflag.Flag
		count map[string]int // of each description
		total int
	}
	uses := map[string]*use{}
	var visit func(*cobra.Command)
	visit = func(cmd *cobra.Command) {
		if cmd.Hidden {
			return
		}
		if _, explained := onPages[pathOf(cmd)]; !explained {
			flagsOf(cmd).VisitAll(func(f *pflag.Flag) {
				u := uses[meaningOf(f)]
				if u == nil {
					u = &use{flag: f, count: map[string]int{}}
					uses[meaningOf(f)] = u
				}
				u.total++
				u.count[f.Usage]++
				if u.count[f.Usage] > u.count[u.flag.Usage] {
					u.flag = f
				}
			})
		}
		for _, sub := range cmd.Commands() {
			visit(sub)
		}
	}
	visit(root)

	most := map[string]*use{}
	for _, u := range uses {
		if other := most[u.flag.Name]; u.total > 1 && (other == nil || u.total > other.total ||
			u.total == other.total && u.flag.Usage < other.flag.Usage) {
			most[u.flag.Name] = u
		}
	}

	shared := pflag.NewFlagSet("", pflag.ContinueOnError)
	for _, u := range most {
		shared.AddFlag(u.flag)
	}
	return shared
}

// meaningOf returns a flag's name, default and description. Of short descriptions of filters, reasons and ends only the
// first word and the values count: "only runs of this app" means the same as "only jobs of this app".
func meaningOf(f *pflag.Flag) string {
	meaning := f.Usage
	word, _, _ := strings.Cut(f.Usage, " ")
	said, values, _ := strings.Cut(f.Usage, ":")
	if slices.Contains([]string{"only", "why", "when"}, word) && len(strings.Fields(said)) <= 12 {
		meaning = word + values
	}
	return strings.Join([]string{f.Name, f.Value.Type(), f.DefValue, meaning}, "|")
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
	if len(described) > 0 {
		var entries []string
		for _, c := range described {
			entries = append(entries, entryOf(c, shared, c.Short != cmd.Short))
		}

		b.WriteString("\n")
		block(b, join(entries))
	}

	for _, sub := range parents {
		sectionOf(b, sub, shared)
	}
}

func pathOf(cmd *cobra.Command) string {
	return strings.TrimPrefix(cmd.CommandPath(), "go-crontab ")
}

// usageOf returns how to call a command.
func usageOf(cmd *cobra.Command) string {
	return "go-crontab " + strings.TrimSuffix(pathOf(cmd), cmd.Name()) + strings.TrimSuffix(cmd.Use, " [flags]")
}

// onPages names the pages that explain all flags of a command.
var onPages = map[string]string{
	"job add":           "docs/jobs.md",
	"alert channel set": "docs/alerts.md",
	"alert rule set":    "docs/alerts.md",
	"app limits":        "docs/limits.md",
	"retention set":     "docs/retention.md",
	"bench":             "--help",
	"dev":               "--help",
	"import crontab":    "--help",
}

// entryOf returns a command's usage, flags and examples. Before them stands its summary, if that adds something to the
// name of the command. A flag whose description begins that of the shared flag is shared: some outputs have fewer
// formats.
func entryOf(cmd *cobra.Command, shared *pflag.FlagSet, summary bool) string {
	own := pflag.NewFlagSet("", pflag.ContinueOnError)
	own.SortFlags = flagsOf(cmd).SortFlags
	also := []string{}
	flagsOf(cmd).VisitAll(func(f *pflag.Flag) {
		s := shared.Lookup(f.Name)
		if s == nil || meaningOf(s) != meaningOf(f) && !strings.HasPrefix(s.Usage, f.Usage) {
			own.AddFlag(f)
		} else if f.Name != "output" { // nearly all commands have it
			also = append(also, "--"+f.Name)
		}
	})

	var lines []string
	if summary && (strings.ContainsAny(cmd.Short, ",;") || strings.Contains(cmd.Short, " that ")) {
		lines = append(lines, "# "+cmd.Short)
	}
	lines = append(lines, usageOf(cmd))

	page, explained := onPages[pathOf(cmd)]
	switch {
	case pathOf(cmd) == "serve":
		lines = append(lines, "  Flags: docs/settings.md")
	case explained:
		lines = append(lines, "  Flags, explained by "+page+":", namesOfFlags(flagsOf(cmd)))
	default:
		if usages := strings.TrimRight(own.FlagUsages(), "\n"); usages != "" {
			lines = append(lines, usages)
		}
		if len(also) > 0 {
			lines = append(lines, "  Also "+strings.Join(also, " "))
		}
	}

	if examples := examplesOf(cmd); examples != "" {
		lines = append(lines, "", examples)
	}
	return strings.Join(lines, "\n")
}

// examplesOf returns the examples of a command that show more than its usage: a flag besides -o, a pipe or a quoted
// argument. It leaves a script whole.
func examplesOf(cmd *cobra.Command) string {
	lines := strings.Split(strings.Trim(cmd.Example, "\n"), "\n")
	plain := func(line string) bool {
		return !strings.Contains(strings.Replace(line, " -o ", " ", 1), " -") && !strings.ContainsAny(line, "|<>$\"")
	}
	for _, line := range lines {
		if plain(line) && !strings.HasPrefix(strings.TrimSpace(line), "go-crontab ") {
			return strings.Join(lines, "\n")
		}
	}
	return strings.Join(slices.DeleteFunc(lines, plain), "\n")
}

// join puts an empty line around each entry of several lines.
func join(entries []string) string {
	var b strings.Builder
	for i, entry := range entries {
		switch {
		case i == 0:
		case strings.Contains(entry, "\n") || strings.Contains(entries[i-1], "\n"):
			b.WriteString("\n\n")
		default:
			b.WriteString("\n")
		}
		b.WriteString(entry)
	}
	return b.String()
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
