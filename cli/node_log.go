package cli

import (
	"net/http"
	"time"

	"go-crontab/api/view"

	"github.com/spf13/cobra"
)

const logLevelPath = "/api/v1/log-level"

func nodeLogLevel(c *console) *cobra.Command {
	var limit time.Duration
	cmd := &cobra.Command{
		Use: "log-level [LEVEL]", Short: "Show or change what a running node logs",
		Args:      wants(0, 1, "at most one LEVEL: debug, info, warn or error"),
		ValidArgs: []string{"debug", "info", "warn", "error"},
		Long: `Show the least level that a node logs, or change it at once, without a restart: debug, info, warn or error. It is that of the
node that --server names, and of no other. With --for the level that the node was started with comes back by itself;
otherwise the change holds until its process ends.`,
		Example: "  go-crontab node log-level\n  go-crontab node log-level debug --for 10m --server http://cron-2:8610",
	}

	r := newRemote(c, cmd)
	cmd.Flags().DurationVar(&limit, "for", 0, "how long the level holds, at most 168h (default until the process ends)")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if limit < 0 || limit > 0 && len(args) == 0 {
			return usageError("--for %s: want more than 0, and a LEVEL", limit)
		}

		method, body := http.MethodGet, any(nil)
		if len(args) == 1 {
			change := map[string]string{"level": args[0]}
			if limit > 0 {
				change["for"] = limit.String()
			}
			method, body = http.MethodPut, change
		}

		v, raw, err := ask[view.LogLevel](cmd.Context(), r, method, logLevelPath, nil, body)
		if err != nil {
			return err
		}

		return r.object(c, raw, v.Node, func() error {
			until := ""
			if v.Until != nil {
				until = "; as before again " + relative(v.Until, time.Now())
			}
			r.printf("%s logs %s and above%s\n", plain(v.Node), plain(v.Level), until)
			return nil
		})
	}

	return cmd
}
