package cli

import "github.com/spf13/cobra"

func clusterCommand(c *console) *cobra.Command {
	cmd := &cobra.Command{Use: "cluster", Short: "List the nodes", Args: nothing}
	r := newRemote(c, cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { _ = r; return nil }
	return cmd
}
