package cli

import "github.com/spf13/cobra"

// fileCommands are those about jobs as files, and those that need no server.
func fileCommands(c *console) []*cobra.Command {
	return []*cobra.Command{
		applyCommand(c), exportCommand(c), importCommand(c), cronCommand(c), schemaCommand(c), contextCommand(c),
	}
}
