package cli

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"go-crontab/api/view"

	"github.com/spf13/cobra"
)

// pauseWords describes the pause: begin, end, author and reason.
func pauseWords(p *view.Pause, now time.Time) string {
	text := "since " + both(&p.Since, now)
	if p.Until != nil {
		text += " until " + both(p.Until, now)
	}
	if p.By != "" {
		text += " by " + p.By
	}
	if p.Reason != "" {
		text += ": " + p.Reason
	}

	return text
}

// whatPaused names the paused object.
func whatPaused(p *view.Pause) string {
	switch p.Scope {
	case "app":
		return "app " + p.App
	case "cluster":
		return "the cluster"
	}
	return "the job"
}

// pauseFlags are the flags of all commands that pause.
type pauseFlags struct{ reason, until string }

func (f *pauseFlags) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.reason, "reason", "", "why it is paused; lists show it")
	cmd.Flags().StringVar(&f.until, "until", "",
		`when the pause ends: a duration such as 2h, or a time such as "2027-01-31 09:00"`)
}

// body returns the request body. A duration is sent as a duration, so that the server's clock
// counts.
func (f *pauseFlags) body(now time.Time) (map[string]string, error) {
	b := map[string]string{}
	if f.reason != "" {
		b["reason"] = f.reason
	}
	if f.until == "" {
		return b, nil
	}

	until, err := parseEnd("until", f.until, now)
	b["until"] = until
	return b, err
}

func jobPause(c *console) *cobra.Command {
	var f pauseFlags
	cmd := jobChange(c, "pause", "paused", "Pause jobs: their due times do not run",
		func() (any, error) { return f.body(c.now()) })
	cmd.Example = "  go-crontab job pause backup\n  go-crontab job pause backup --reason \"disk is full\" --until 2h\n  go-crontab job pause --app ops --label team=data --dry-run"
	f.flags(cmd)
	return cmd
}

func appCommand(c *console) *cobra.Command {
	pause := pauseAll(c, "pause APP", "Pause all jobs of an app", wants(1, 1, "APP"),
		"  go-crontab app pause ops --reason \"database maintenance\" --until 2h")
	resume := resumeAll(c, "resume APP", "Resume a paused app", wants(1, 1, "APP"),
		"  go-crontab app resume ops")
	return newGroup("app", "Pause, resume and limit all jobs of an app", pause, resume,
		appLimits(c))
}

// scopePath returns the path for pauses of an app, or of the cluster.
func scopePath(args []string) (path, what string) {
	if len(args) == 0 {
		return "/api/v1/cluster", "the cluster"
	}
	return "/api/v1/apps/" + url.PathEscape(args[0]), "app " + args[0]
}

// nameOfScope returns the -o name output for a scope.
func nameOfScope(args []string) string {
	if len(args) == 0 {
		return "cluster"
	}
	return args[0]
}

// pauseAll pauses an app, or the cluster without an argument.
func pauseAll(c *console, use, short string, args cobra.PositionalArgs, example string) *cobra.Command {
	var f pauseFlags
	absentOK := false
	cmd := &cobra.Command{
		Use: use, Short: short, Args: args, Example: example,
		Long: short +
			`, including jobs that are added later. Executing runs finish, and jobs can still be run by hand.
After the pause, the misfire policy of each job decides which missed due times run.`,
	}

	r := newRemote(c, cmd)
	f.flags(cmd)
	if strings.HasSuffix(use, " APP") {
		absentFlag(cmd, &absentOK, "app")
	}

	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		body, err := f.body(c.now())
		if err != nil {
			return err
		}

		path, what := scopePath(args)
		p, raw, err := ask[view.Pause](cmd.Context(), r, http.MethodPost, path+"/pause", absent(absentOK), body)
		if len(args) > 0 {
			err = orAbsent(err)
		}
		if err != nil {
			return err
		}

		return r.object(c, raw, nameOfScope(args), func() error {
			until := ", until it is resumed"
			if p.Until != nil {
				until = ", until " + both(p.Until, c.now())
			}
			c.printf("paused %s%s%s\n", plain(what), jobsOf(p.Jobs), until)
			return nil
		})
	}

	return cmd
}

func jobsOf(n *int64) string {
	switch {
	case n == nil:
		return ""
	case *n == 1:
		return ", with 1 job"
	}
	return fmt.Sprintf(", with %d jobs", *n)
}

// resumeAll resumes an app, or the cluster without an argument.
func resumeAll(c *console, use, short string, args cobra.PositionalArgs, example string) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short, Args: args, Example: example}
	r := newRemote(c, cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		path, what := scopePath(args)
		left, raw, err := ask[view.Page[view.Pause]](cmd.Context(), r, http.MethodPost, path+"/resume", nil, struct{}{})
		if err != nil {
			return err
		}
		return r.object(c, raw, nameOfScope(args), func() error {
			c.printf("resumed %s\n", plain(what))
			return r.notePauses(left.Items)
		})
	}

	return cmd
}

// notePauses prints the pauses of apps and of the cluster.
func (r *remote) notePauses(pauses []view.Pause) error {
	for _, p := range pauses {
		r.notef("%s is paused %s\n", plain(whatPaused(&p)), plain(pauseWords(&p, r.now())))
	}
	return nil
}
