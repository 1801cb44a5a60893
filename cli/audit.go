package cli

import (
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
		Use: "audit", Short: "List who changed what, the latest first", Args: nothing,
		Long: `List who changed what, the latest first: jobs, pauses, kills, tokens, secrets, sign-ins and who was refused, and what
became of nodes that left, vanished or lost their session. -o json also says what each was before, and what it became.`,
		Example: "  go-crontab audit\n  go-crontab audit --job backup\n  go-crontab audit --who alice --from \"2027-01-31 09:00\"\n  go-crontab audit --action refuse",
	}

	r := newRemote(c, cmd)
	cmd.Flags().StringVarP(&app, "app", "a", "", "only of this app and its jobs")
	cmd.Flags().StringVarP(&job, "job", "j", "", "only of this job")
	cmd.Flags().StringVar(&name, "name", "", "only of what has this name")
	cmd.Flags().StringVar(&action, "action", "",
		"only these: create, update, delete, pause, kill, sign_in, refuse, reap, …")
	cmd.Flags().StringVar(&kind, "kind", "", "only changes of these: job, app, cluster, session, …")
	cmd.Flags().StringVar(&who, "who", "", "only by this one")
	cmd.Flags().StringVar(&from, "from", "", `only at or after, such as "2027-01-31 09:00"`)
	cmd.Flags().StringVar(&to, "to", "", "only before")
	cmd.Flags().IntVarP(&n, "count", "n", 20, "at most so many, 0 is all")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		f := runFilter{app: app, from: from, to: to, n: n}
		q, err := f.query(c.now())
		if err != nil {
			return err
		}

		for name, value := range map[string]string{"kind": kind, "who": who, "name": name, "action": action} {
			if value != "" {
				q.Set(name, value)
			}
		}

		if job != "" {
			j, _, err := findJob(cmd.Context(), r, job)
			if err != nil {
				return err
			}
			q.Set("job_id", j.ID)
		}

		return r.audit(cmd, q, n)
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
			r.notef("Nobody changed anything.\n")
			return nil
		}

		t := &table{columns: []column{
			{head: "AT"}, {head: "WHO", shrink: true}, {head: "FROM", shrink: true, drop: true}, {head: "DID"},
			{head: "TO", spare: true}, {head: "WHAT", shrink: true}, {head: "REASON", shrink: true, spare: true},
		}}

		for _, e := range lines {
			t.add(text(whole(&e.At, r.zone())), text(e.Who), text(e.Origin), text(e.Action), text(e.Kind),
				text(e.what()), text(e.Reason))
		}
		return r.table(t)
	})
}
