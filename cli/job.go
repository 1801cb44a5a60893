package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"go-crontab/api"

	"github.com/spf13/cobra"
)

const jobArgument = "JOB (its id, app/name, or name)"

func jobCommand(c *console) *cobra.Command {
	return newGroup("job", "Add, show, change and run jobs",
		jobAdd(c), jobEdit(c), jobList(c), jobShow(c), jobNext(c), jobHistory(c), jobExplain(c),
		jobPause(c),
		jobChange(c, "resume", "resumed", "Resume a paused job",
			func() (any, error) { return struct{}{}, nil }),
		jobRun(c), jobRemove(c), jobVersions(c), jobDiff(c), jobRollback(c))
}

// splitName splits app/name. A name without an app is in the default app.
func splitName(s string) (app, name string) {
	if app, name, ok := strings.Cut(s, "/"); ok {
		return app, name
	}
	return "default", s
}

// namedPath returns the API path of a job by its name.
func namedPath(app, name string) string {
	return "/api/v1/apps/" + url.PathEscape(app) + "/jobs/" + url.PathEscape(name)
}

// isJobID reports whether an argument is the id of a job. Other arguments are names.
func isJobID(arg string) bool { return arg != "" && strings.Trim(arg, "0123456789") == "" }

// findJob reads the job that an argument names. An argument of digits is an id.
func findJob(ctx context.Context, r *remote, arg string) (j jobView, raw json.RawMessage, err error) {
	path := "/api/v1/jobs/" + arg
	if !isJobID(arg) {
		app, name := splitName(arg)
		if app == "" || name == "" {
			return j, nil, usageError("%q: want %s", arg, jobArgument)
		}
		path = namedPath(app, name)
	}

	j, raw, err = get[jobView](ctx, r, path, nil)
	if isStatus(err, http.StatusNotFound) {
		err = r.noJob(ctx, "job", arg, "job")
	}
	return j, raw, err
}

// noJob returns the error that a job or a run does not exist. It suggests a similar job.
func (r *remote) noJob(ctx context.Context, what, arg, command string) error {
	err := notFound(what, arg)
	if near := r.nearestJob(ctx, arg); near != "" {
		err = fmt.Errorf("%w; did you mean %q?", err, plain(near))
	}
	return &exitError{
		code: exitNotFound, err: err, hint: fmt.Sprintf("to list %ss:  %s %s ls", command, program(), command),
	}
}

// nearestJob returns the job that was probably meant: a job of the same name in another app, or a
// job of a similar name in the same app.
func (r *remote) nearestJob(ctx context.Context, arg string) string {
	app, name := splitName(arg)
	if len(name) < 2 || isJobID(arg) { // everything is similar to a letter
		return ""
	}

	same, _, err := listQuietly[jobView](ctx, r, "/api/v1/jobs", url.Values{"name": {name}}, maxPage)
	if err != nil { // only a hint
		return ""
	}
	for _, j := range same {
		if j.Name == name {
			return j.fullName()
		}
	}

	others, _, err := listQuietly[jobView](ctx, r, "/api/v1/jobs", url.Values{"app": {app}}, maxPage)
	if err != nil {
		return ""
	}

	var names []string
	for _, j := range others {
		names = append(names, j.Name)
	}
	near := api.Nearest(name, names)
	if near == "" || !strings.Contains(arg, "/") {
		return near
	}
	return app + "/" + near
}

// jobChange builds the commands pause and resume. body returns the request body.
func jobChange(c *console, verb, done, short string, body func() (any, error)) *cobra.Command {
	cmd := &cobra.Command{
		Use: verb + " JOB…", Short: short, Args: wants(1, -1, jobArgument),
		Example: "  go-crontab job " + verb + " backup\n  go-crontab job " + verb +
			" --app ops --label team=data --dry-run",
		ValidArgsFunction: completeJobs(c),
	}

	many := bulk{action: verb, done: done}
	r := newRemote(c, cmd)
	many.flags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		sent, err := body()
		if err != nil {
			return err
		}

		if is, err := many.selected(cmd.Context(), r, sent); is {
			return err
		}

		for _, arg := range args {
			j, _, err := findJob(cmd.Context(), r, arg)
			if err != nil {
				return err
			}

			j, raw, err := ask[jobView](cmd.Context(), r, http.MethodPost, j.path()+"/"+verb, nil, sent)
			if err != nil {
				return err
			}

			err = r.object(c, raw, j.fullName(), func() error {
				c.printf("%s %s%s\n", done, plain(j.fullName()), nextDue(&j, c.now()))
				if verb == "pause" && len(j.Followers) > 0 {
					c.notef("it holds up the jobs that follow it: %s\n", plain(strings.Join(j.Followers, ", ")))
				}
				return nil
			})
			if err != nil {
				return err
			}
		}

		return nil
	}

	return cmd
}

// nextDue describes the next due time of a job, as the end of a sentence.
func nextDue(j *jobView, now time.Time) string {
	switch {
	case j.NextDue != nil && j.At != nil && !j.At.After(now):
		return ", due " + both(j.At, now) + ", which has passed: it starts at once"
	case j.NextDue != nil && j.NextDue.Before(now.Add(-time.Second)): // it was paused until now
		return ", due since " + both(j.NextDue, now) + ": the misfire policy decides which missed due times run"
	case j.NextDue != nil:
		return ", next due " + both(j.NextDue, now)
	case j.Status == "paused" && j.Pause != nil && j.Pause.Scope != "job":
		return ", but " + plain(whatPaused(j.Pause)) + " is paused: no scheduled runs until it is resumed"
	case j.Status == "paused" && j.Pause != nil && j.Pause.Until != nil:
		return ", no scheduled runs until " + both(j.Pause.Until, now)
	case j.Status == "paused":
		return ", no scheduled runs until it is resumed"
	case j.After != nil:
		return ", due after " + plain(strings.Join(j.After.Jobs, ", "))
	case j.Manual:
		return ", without a schedule"
	case j.Status == "finished":
		return ", no due times left"
	}
	return ""
}

func jobRemove(c *console) *cobra.Command {
	many := bulk{action: "delete", done: "deleted"}
	cmd := &cobra.Command{
		Use: "rm JOB…", Short: "Delete jobs; running runs finish, and the history stays",
		Args:              wants(1, -1, jobArgument),
		Example:           "  go-crontab job rm backup\n  go-crontab job rm --app ops --name-contains old --dry-run\n  go-crontab job rm --app ops --name-contains old --yes",
		ValidArgsFunction: completeJobs(c),
	}

	r := newRemote(c, cmd)
	many.flags(cmd)
	force := cmd.Flags().Bool("force", false, "delete jobs even if other jobs follow them")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		var query url.Values
		if *force {
			query = url.Values{"force": {"true"}}
		}
		if *force && len(args) == 0 {
			return usageError("--force needs the names of the jobs")
		}
		if is, err := many.selected(cmd.Context(), r, struct{}{}); is {
			return err
		}

		for _, arg := range args {
			j, _, err := findJob(cmd.Context(), r, arg)
			if err != nil {
				return err
			}
			if !many.yes && !c.confirm("Delete %s (id %s) at %s?", plain(j.fullName()), j.ID, r.server) {
				return &exitError{code: exitFailed, err: fmt.Errorf("%s was not deleted", plain(j.fullName()))}
			}
			if _, err := r.call(cmd.Context(), http.MethodDelete, j.path(), query, nil); err != nil {
				return err
			}

			err = r.object(c, deleted{j.fullName()}, j.fullName(), func() error {
				c.printf("deleted %s\n", plain(j.fullName()))
				return nil
			})
			if err != nil {
				return err
			}
		}

		return nil
	}

	return cmd
}

// completeJobs completes names of jobs, if a server answers quickly.
func completeJobs(c *console) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		r, ok := completing(c, cmd)
		if !ok {
			return nil, cobra.ShellCompDirectiveError
		}

		jobs, _, err := list[jobView](cmd.Context(), r, "/api/v1/jobs", nil, maxPage)
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}

		var names []cobra.Completion
		for _, j := range jobs {
			name := j.Name
			if strings.Contains(typed, "/") || j.App != "default" || strings.Contains(name, "/") {
				name = j.fullName()
			}
			if strings.HasPrefix(name, typed) {
				names = append(names, cobra.CompletionWithDesc(name, j.when(c.zone())))
			}
		}

		return names, cobra.ShellCompDirectiveNoFileComp
	}
}
