package cli

import (
	"fmt"
	"net/url"
	"strings"
	"time"

	"go-crontab/api/view"

	"github.com/spf13/cobra"
)

func jobExplain(c *console) *cobra.Command {
	at := ""
	cmd := &cobra.Command{
		Use: "explain JOB --at TIME", Short: "Explain why a job ran, or did not run, at a time",
		Args: wants(1, 1, jobArgument),
		Long: `Explain why a job ran, or did not run, at a time. The answer names the outcome, or the reason: a
pause, what the run waits for, a calendar, a clock change, an outage of all nodes, and so on. It
covers manual runs and backfills, and uses the definition of that time. Name a deleted job by its
id.`,
		Example:           "  go-crontab job explain backup --at \"2027-01-31 03:00\"\n  go-crontab job explain backup --at 2027-01-31T03:00:00+01:00",
		ValidArgsFunction: completeJobs(c),
	}

	r := newRemote(c, cmd)
	cmd.Flags().StringVar(&at, "at", "",
		"time to explain, as job history prints it; in --timezone unless it has an offset")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		j, _, err := findJob(cmd.Context(), r, args[0])
		if codeOf(err) == exitNotFound && strings.Trim(args[0], "0123456789") == "" {
			j.ID, j.App, j.Name, err = args[0], "job", args[0], nil // possibly deleted
		}
		if err != nil {
			return err
		}
		if at == "" {
			return usageError("--at is missing: give a time, such as --at \"2027-01-31 03:00\"")
		}

		t, err := parseTime(at, c.zone(), c.now())
		if err != nil {
			return usageError("--at %w", err)
		}

		e, raw, err := get[view.Explanation](cmd.Context(), r, j.path()+"/explain",
			url.Values{"at": {t.Format(time.RFC3339Nano)}})
		if err != nil {
			return err
		}

		return r.object(c, raw, e.Cause, func() error {
			c.printf("%s at %s: %s\n", plain(j.fullName()), bothClocks(&t, j.zone(), c.zone()),
				plain(timesIn(e.Answer, c.zone())))
			for _, around := range []struct {
				word string
				due  *view.DueTime
			}{{"before", e.Before}, {"after", e.After}} {
				if around.due != nil {
					c.notef("%-17s %s\n", fmt.Sprintf("due time %s:", around.word),
						bothClocks(&around.due.Due, j.zone(), c.zone()))
				}
			}

			if e.Pause != nil {
				c.notef("%-17s %s\n", plain(whatPaused(e.Pause))+" paused:", plain(pauseWords(e.Pause, c.now())))
			}
			if e.Changed != nil {
				c.notef("%-17s %s by %s\n", "changed later:", absolute(&e.Changed.At, c.zone()), plain(e.Changed.By))
			}
			return nil
		})
	}

	return cmd
}
