package cli

import "github.com/spf13/cobra"

// fileCommands are the commands for job files, and the commands that need no server.
func fileCommands(c *console) []*cobra.Command {
	return []*cobra.Command{
		applyCommand(c), exportCommand(c), importCommand(c), cronCommand(c), schemaCommand(c), contextCommand(c),
		mockCommand(c), mcpCommand(c),
	}
}
