package cli

import (
	"net/http"

	"github.com/spf13/cobra"
)

// removal describes a command that deletes named objects.
type removal struct {
	what, use      string // such as "group", "GROUP"
	short, example string
	path           func(name string) string
	list, listedBy string // API path of the list, and the command whose ls prints the list; empty: none
}

func (d removal) command(c *console) *cobra.Command {
	cmd := &cobra.Command{
		Use: "rm " + d.use + "…", Short: d.short, Args: wants(1, -1, d.use), Example: d.example,
	}
	r := newRemote(c, cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		for _, name := range args {
			if _, err := r.call(cmd.Context(), http.MethodDelete, d.path(name), nil, nil); err != nil {
				if d.list != "" {
					err = r.missing(cmd.Context(), err, d.what, name, d.list, d.listedBy)
				}
				return err
			}
			if err := r.object(c, deleted{name}, name,
				func() error { c.printf("deleted %s %s\n", d.what, plain(name)); return nil }); err != nil {
				return err
			}
		}
		return nil
	}

	return cmd
}
