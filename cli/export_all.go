package cli

import (
	"context"
	"fmt"
	"net/url"
	"time"

	"go-crontab/api/view"
)

// everything is a limit larger than any list.
const everything = 1 << 30

// notes are comments of an export: commands for objects that a file cannot hold.
type notes struct{ lines []string }

// add adds a command. Flags with an empty value are left out.
func (n *notes) add(command string, flags ...string) {
	for i := 0; i+1 < len(flags); i += 2 {
		if flags[i+1] != "" {
			command += " " + flags[i] + " " + quote(flags[i+1])
		}
	}
	n.say("go-crontab " + command)
}

func (n *notes) say(line string) { n.lines = append(n.lines, plain(line)) }

// print writes the notes below a heading, if there are any.
func (n *notes) print(r *remote, heading string) {
	if len(n.lines) == 0 {
		return
	}
	r.printf("# %s\n", heading)
	for _, l := range n.lines {
		r.printf("# %s\n", l)
	}
}

// stamp formats a time for a flag, or returns "".
func stamp(t *time.Time) string {
	if t == nil {
		return ""
	}
	return t.Format(time.RFC3339)
}

// exportSecrets prints, as comments, commands that create the secrets. Nobody can read the values
// of secrets. The commands come first, because other objects name the secrets.
func (r *remote) exportSecrets(ctx context.Context) error {
	secrets, _, err := list[view.Secret](ctx, r, secretsPath, nil, everything)
	if err != nil {
		return err
	}
	var n notes
	for _, s := range secrets {
		n.add("secret set "+quote(s.Name), "--app", s.App)
	}
	n.print(r, "Run these first, on the other cluster. Each asks for the value, which is not exported:")
	return nil
}

// exportRest prints, as comments, all other state that a file cannot hold.
func (r *remote) exportRest(ctx context.Context) error {
	var n notes
	for _, add := range []func(context.Context, *notes) error{
		r.noteJobPauses, r.noteHandlers, r.noteNodes, r.noteSilences, r.noteTokens,
	} {
		if err := add(ctx, &n); err != nil {
			return err
		}
	}

	r.printf("\n")
	n.print(r, "Then run those that you need. Values of tokens are not exported; these commands create new ones:")
	left := notes{[]string{"history and output, the audit, versions of jobs, alerts and messages, idempotency keys"}}
	if err := r.noteBackfills(ctx, &left); err != nil {
		return err
	}

	left.print(r, "Not exported:")
	return nil
}

// noteJobPauses notes the reasons and ends of job pauses. The file itself only says that a job is
// paused.
func (r *remote) noteJobPauses(ctx context.Context, n *notes) error {
	jobs, _, err := list[jobView](ctx, r, "/api/v1/jobs", url.Values{"status": {"paused"}}, everything)
	for _, j := range jobs {
		if p := j.Pause; p != nil && p.Scope == "job" && (p.Reason != "" || p.Until != nil) {
			n.add("job pause "+quote(j.App+"/"+j.Name), "--reason", p.Reason, "--until", stamp(p.Until))
		}
	}
	return err
}

func (r *remote) noteHandlers(ctx context.Context, n *notes) error {
	handlers, _, err := get[view.Page[handlerView]](ctx, r, handlersPath, nil)
	for _, h := range handlers.Items {
		if h.Disabled {
			n.add("handler disable "+quote(h.Key), "--reason", h.Reason)
		}
	}
	return err
}

func (r *remote) noteNodes(ctx context.Context, n *notes) error {
	nodes, _, err := get[view.Page[nodeView]](ctx, r, nodesPath, nil)
	for _, v := range nodes.Items {
		if v.Cordoned {
			n.add("node cordon --absent-ok "+quote(v.Name), "--reason", v.Reason)
		}
	}
	return err
}

func (r *remote) noteSilences(ctx context.Context, n *notes) error {
	silences, _, err := list[silenceView](ctx, r, silencesPath, nil, everything)
	for _, s := range silences {
		switch {
		case s.Over:
		case s.Job != "":
			n.add("alert silence add", "--job", s.App+"/"+s.Job, "--rule", s.Rule, "--until", stamp(&s.Until),
				"--reason", s.Reason)
		default:
			n.add("alert silence add", "--app", s.App, "--rule", s.Rule, "--until", stamp(&s.Until), "--reason",
				s.Reason)
		}
	}

	return err
}

func (r *remote) noteTokens(ctx context.Context, n *notes) error {
	tokens, _, err := list[tokenView](ctx, r, "/api/v1/tokens", url.Values{}, everything)
	for _, t := range tokens {
		if t.State != "" && t.State != "active" {
			continue
		}
		flags := []string{"--role", string(t.Role)}
		for _, app := range t.Apps {
			flags = append(flags, "--app", app)
		}
		n.add("token create "+quote(t.Name), append(flags, "--expires", orElse(stamp(t.Expires), "never"))...)
	}

	return err
}

// noteBackfills notes running backfills. Only this cluster knows which of their due times have run.
func (r *remote) noteBackfills(ctx context.Context, n *notes) error {
	found, _, err := list[backfillView](ctx, r, backfillsPath, nil, everything)
	for _, b := range found {
		if b.State != "running" {
			continue
		}
		of := "job " + b.JobID
		if j, _, err := get[jobView](ctx, r, "/api/v1/jobs/"+b.JobID, nil); err == nil {
			of = j.App + "/" + j.Name
		}
		n.say(fmt.Sprintf("the backfill of %s from %s to %s: %s; let it finish on this cluster", of, stamp(&b.From),
			stamp(&b.To), b.progress()))
	}

	return err
}
