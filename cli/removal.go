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
	explain        func(err error, name string) error // may replace an error; nil: unchanged
}

func (d removal) command(c *console) *cobra.Command {
	cmd := &cobra.Command{
		Use: "rm " + d.use + "…", Short: d.short, Args: wants(1, -1, "the "+d.use), Example: d.example,
	}
	r := newRemote(c, cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		for _, name := range args {
			if _, err := r.call(cmd.Context(), http.MethodDelete, d.path(name), nil, nil); err != nil {
				if d.explain != nil {
					err = d.explain(err, name)
				}
				return err
			}
			if err := r.object(c, deleted{name}, name,
				func() error { c.printf("%s %s is deleted\n", d.what, plain(name)); return nil }); err != nil {
				return err
			}
		}
		return nil
	}

	return cmd
}
