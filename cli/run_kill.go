package cli

import (
	"net/http"
	"net/url"

	"go-crontab/api/view"

	"github.com/spf13/cobra"
)

func runKill(c *console) *cobra.Command {
	cmd := &cobra.Command{
		Use: "kill RUN", Short: "Kill an executing run, on any node", Args: wants(1, 1, runArgument),
		Long: `Kill an executing run, on any node. Its processes get SIGTERM within a second, and SIGKILL a few
seconds later. The run ends with outcome killed and is not retried.`,
		Example:           "  go-crontab run kill backup\n  go-crontab run kill $(go-crontab run ls --state running --node web-1 -n 1 -o name)",
		ValidArgsFunction: completeJobs(c),
	}

	r := newRemote(c, cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		run, _, err := findRun(cmd.Context(), r, args[0])
		if err != nil {
			return err
		}

		_, raw, err := ask[view.Run](cmd.Context(), r, http.MethodPost, "/api/v1/runs/"+url.PathEscape(run.ID)+"/kill",
			nil, struct{}{})
		if isStatus(err, http.StatusConflict) {
			return withHint(err, "to see how it ended:  %[1]s run show %[2]s", program(), run.ID)
		}
		if err != nil {
			return err
		}

		return r.object(c, raw, run.ID, func() error {
			c.printf("%s/%s is being killed on %s; to see how it ends:  %s run show %s\n", plain(run.App),
				plain(run.Job), plain(run.Node), program(), run.ID)
			return nil
		})
	}

	return cmd
}
