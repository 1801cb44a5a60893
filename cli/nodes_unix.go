//go:build unix

package cli

import "github.com/spf13/cobra"

// nodeCommands run nodes.
func nodeCommands(c *console) []*cobra.Command {
	return []*cobra.Command{devCommand(c), serveCommand(c), benchCommand(c)}
}

// hiddenCommands are what nodeCommands start.
func hiddenCommands(c *console) []*cobra.Command { return []*cobra.Command{benchNodeCommand(c)} }
