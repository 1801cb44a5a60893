//go:build !unix

package cli

import "github.com/spf13/cobra"

// nodeCommands are placeholders for the commands that run nodes. They say on which systems nodes
// run. Nodes need process groups, signals and bash.
func nodeCommands(*console) []*cobra.Command {
	var commands []*cobra.Command
	for _, name := range []string{"dev", "serve", "bench"} {
		commands = append(commands, &cobra.Command{
			Use:                name,
			Short:              "Not available on this system: nodes run on Linux and macOS",
			DisableFlagParsing: true,
			RunE: func(*cobra.Command, []string) error {
				return withHint(usageError("go-crontab %s: nodes run only on Linux and macOS", name),
					"to use a node from here:  --server or GOCRONTAB_SERVER")
			},
		})
	}

	return commands
}

func hiddenCommands(*console) []*cobra.Command { return nil }

// isLocked is never called: without dev there are no links to its token.
func isLocked(string) bool { return false }
