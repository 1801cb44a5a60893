package cli

import (
	"maps"
	"net/url"

	"go-crontab/api/view"

	"github.com/spf13/cobra"
)

// auditView is an entry of the audit.
type auditView struct{ view.AuditEntry }

// what returns the name of the changed object.
func (e *auditView) what() string {
	if e.App == "" || e.Name == "" {
		return e.App + e.Name
	}
	return e.App + "/" + e.Name
}

func auditCommand(c *console) *cobra.Command {
	var app, job, name, kind, action, who, from, to string
	n := 0
	cmd := &cobra.Command{
		Use: "audit", Short: "List changes and who made them, newest first", Args: nothing,
		Long: `List changes and who made them, newest first: changes of jobs, pauses, tokens and secrets, kills,
sign-ins, refused requests, and nodes that left, vanished or lost their session. -o json also shows
the values before and after.`,
		Example: "  go-crontab audit\n  go-crontab audit --job backup\n  go-crontab audit --who alice --from \"2027-01-31 09:00\"\n  go-crontab audit --action refuse",
	}

	r := newRemote(c, cmd)
	cmd.Flags().StringVarP(&app, "app", "a", "", "only changes of this app and its jobs")
	cmd.Flags().StringVarP(&job, "job", "j", "", "only changes of this job; it may be deleted")
	cmd.Flags().StringVar(&name, "name", "", "only changes of the thing with this name")
	cmd.Flags().StringVar(&action, "action", "",
		"only this action: create, update, delete, pause, kill, sign_in, refuse, reap, …")
	cmd.Flags().StringVar(&kind, "kind", "", "only changes of this kind of thing: job, app, cluster, session, …")
	cmd.Flags().StringVar(&who, "who", "", "only changes by this person or token")
	cmd.Flags().StringVar(&from, "from", "", `only at or after this time, such as "2027-01-31 09:00"`)
	cmd.Flags().StringVar(&to, "to", "", "only before this time")
	cmd.Flags().IntVarP(&n, "limit", "n", 20, "show at most this many, 0 for all")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		f := runFilter{app: app, from: from, to: to, n: n}
		q, err := f.query(c.now())
		if err != nil {
			return err
		}

		maps.Copy(q, given("kind", kind, "who", who, "name", name, "action", action))

		if err := r.onlyJob(cmd.Context(), q, job); err != nil {
			return err
		}
		return r.orNoJob(cmd.Context(), r.audit(cmd, q, n), job)
	}

	cmd.AddCommand(auditVerifyCommand(c))
	return cmd
}

func (r *remote) audit(cmd *cobra.Command, q url.Values, n int) error {
	lines, raw, err := list[auditView](cmd.Context(), r, "/api/v1/audit", q, n)
	if err != nil {
		return err
	}
	return r.list(raw, func(i int) string { return lines[i].ID }, func() error {
		if len(lines) == 0 {
			r.notef("No changes match.\n")
			return nil
		}

		t := &table{columns: []column{
			{head: "AT"}, {head: "WHO", shrink: true}, {head: "FROM", shrink: true, drop: true}, {head: "ACTION"},
			{head: "KIND", spare: true}, {head: "NAME", shrink: true}, {head: "REASON", shrink: true, spare: true},
		}}

		for _, e := range lines {
			t.add(text(whole(&e.At, r.zone())), text(e.Who), text(e.Origin), text(e.Action), text(e.Kind),
				text(e.what()), text(e.Reason))
		}
		return r.table(t)
	})
}
