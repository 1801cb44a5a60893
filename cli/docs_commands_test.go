package cli

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// TestPagesNameCommandsThatExist checks that each command in a Markdown file exists and has the
// flags shown there. Other tests run the commands.
func TestPagesNameCommandsThatExist(t *testing.T) {
	t.Parallel()

	root, named := newTestRoot(), 0
	root.InitDefaultCompletionCmd()
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && slices.Contains([]string{".git", "node_modules", "bin", "dist"}, entry.Name()):
			return filepath.SkipDir
		case entry.IsDir() || filepath.Ext(path) != ".md":
			return nil
		}

		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}

		inBlock := false
		for i, line := range strings.Split(string(text), "\n") {
			if strings.HasPrefix(line, "```") {
				inBlock = !inBlock
				continue
			}

			code := []string{line}
			if !inBlock {
				code = inCode(line)
			}

			for _, c := range code {
				for _, words := range commandsIn(c) {
					named++
					if err := exists(root, words); err != nil {
						t.Errorf("%s:%d: go-crontab %s: %v", path, i+1, strings.Join(words, " "), err)
					}
				}
			}
		}

		return nil
	})
	if err != nil {
		t.Fatal(err)
	}

	if named < 350 {
		t.Errorf("only %d commands were found", named)
	}
}

var codeSpan = regexp.MustCompile("`([^`]+)`")

func inCode(line string) (spans []string) {
	for _, match := range codeSpan.FindAllStringSubmatch(line, -1) {
		spans = append(spans, match[1])
	}
	return spans
}

var (
	// A command of ours begins a line, or follows a separator. It is not a path or a unit's name.
	ours = regexp.MustCompile(`(?:^|[|;(&] *|\$ |bin/|then |do )go-crontab +([a-z][^\n]*)`)
	// It ends at another command, a redirection, a comment, or the command of a job.
	after = regexp.MustCompile(` -- | --$|[|;)&<>]| #|\s{3,}`)
	// Quoted words are not flags.
	quoted = regexp.MustCompile(`'[^']*'|"[^"]*"`)
)

// commandsIn returns the words of each command of ours in a line of code.
func commandsIn(line string) (found [][]string) {
	line = quoted.ReplaceAllString(strings.ReplaceAll(line, `\|`, "|"), "QUOTED")
	for {
		at := ours.FindStringSubmatchIndex(line)
		if at == nil {
			return found
		}
		rest := line[at[2]:]
		words := rest
		if end := after.FindStringIndex(rest); end != nil {
			words = rest[:end[0]]
		}
		found = append(found, strings.Fields(words))
		line = rest[len(words):]
	}
}

// exists returns the problem with a command: an unknown command or flag.
func exists(root *cobra.Command, words []string) error {
	cmd := root
	for len(words) > 0 && cmd.HasAvailableSubCommands() {
		if strings.HasPrefix(words[0], "-") || strings.ToLower(words[0]) != words[0] || words[0] == "help" {
			break
		}
		next, _, err := cmd.Find(words[:1])
		if err != nil || next == cmd {
			return fmt.Errorf("%s has no command %s", cmd.CommandPath(), words[0])
		}
		cmd, words = next, words[1:]
	}

	cmd.InitDefaultHelpFlag()
	cmd.InitDefaultVersionFlag()
	for _, word := range words {
		name, isFlag := strings.CutPrefix(strings.Trim(word, "[]…,"), "--")
		name, _, _ = strings.Cut(name, "=")
		if isFlag && cmd.Flag(name) == nil {
			return fmt.Errorf("%s has no flag --%s", cmd.CommandPath(), name)
		}
	}

	return nil
}
