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
		Use: "log-level [LEVEL]", Short: "Show or change the log level of a running node",
		Args:      wants(0, 1, "at most one LEVEL: debug, info, warn or error"),
		ValidArgs: []string{"debug", "info", "warn", "error"},
		Long: `Show or change the log level of a running node, without a restart: debug, info, warn or error. This
affects only the node that --server names. With --for, the node returns to its initial level after
that time; otherwise the level holds until its process ends.`,
		Example: "  go-crontab node log-level\n  go-crontab node log-level debug --for 10m --server http://cron-2:8610",
	}

	r := newRemote(c, cmd)
	durationVar(cmd.Flags(), &limit, "for", 0,
		"return to the initial level after this long, at most 168h (default never)")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if limit < 0 || limit > 0 && len(args) == 0 {
			return usageError("--for %s: want a duration above 0, together with a LEVEL", limit)
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
				until = "; back to its initial level " + relative(v.Until, time.Now())
			}
			r.printf("%s logs %s and above%s\n", plain(v.Node), plain(v.Level), until)
			return nil
		})
	}

	return cmd
}
