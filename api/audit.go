package api

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"go-crontab/api/view"
	"go-crontab/internal/audit"
	"go-crontab/internal/auth"
	"go-crontab/job"
	"go-crontab/job/problem"
)

func viewOfEntry(e *job.Entry) *view.AuditEntry {
	v := &view.AuditEntry{
		ID: strconv.FormatInt(e.ID, 10), At: e.At.Time(), Who: e.Who, Origin: e.Origin, Action: e.Action, Kind: e.Kind,
		App: e.App, Name: e.Name, Reason: e.Reason, Was: raw(e.Was), Became: raw(e.Became),
	}
	if e.Kind == job.KindJob && e.Ref != 0 {
		v.JobID = strconv.FormatInt(e.Ref, 10)
	}
	return v
}

// raw returns stored JSON unchanged. If the value is not JSON, perhaps because it was changed
// outside the program, raw returns it as a JSON string.
func raw(s string) json.RawMessage {
	if s == "" || json.Valid([]byte(s)) {
		return json.RawMessage(s)
	}
	b, _ := json.Marshal(s) // a text cannot fail
	return b                // marshalling a string cannot fail
}

// hiddenChannel returns the definition of a channel as callers see it who are not admins: see
// viewChannel.
func hiddenChannel(text string) string {
	var c job.AlertChannel
	if text == "" {
		return ""
	}
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		return "***" // its contents are unknown
	}

	hideSecrets(&c)
	b, _ := json.Marshal(&c) // marshalling plain values cannot fail
	return string(b)
}

// ifReadable returns the definition of a job, or "" if the caller may not read its app. The audit
// line of a move also holds the definition in the earlier app, and the caller may not read that
// app.
func ifReadable(ctx context.Context, spec string) string {
	if app := appIn(spec); app != "" && !mayRead(ctx, app) {
		return ""
	}
	return spec // a definition, or a text without an app, such as the end of a pause
}

// auditKinds and auditActions list all kinds and actions in the audit. A filter with any other word
// is refused, because it could match nothing.
var (
	auditKinds = []string{
		"job", "app", "cluster", "group", "calendar", "secret", "node", "handler", "folder", "retention", "limits",
		"alert_rule", "alert_channel", "alert_silence", "session", "token", "login", "request",
	}
	auditActions = []string{
		"create", "update", "rollback", "delete", "pause", "resume", "run", "kill", "backfill", "cancel", "apply",
		"cordon", "drain", "uncordon", "disable", "enable", "rotate", "test", "revoke", "sign_in", "sign_out", "refuse",
		"reap", "leave", "fence", "reset", "break", "void",
	}
)

// listAudit: GET /api/v1/audit, latest first.
func (s *Server) listAudit(w http.ResponseWriter, r *http.Request) error {
	q := newQuery(r)
	from, to := q.between(auditFrom, auditBefore)
	f := audit.Filter{
		App: q.text(ofAppParam), Name: q.text(auditName), Who: q.text(auditWho),
		Action: job.Action(q.word(auditAction)), Kind: job.Kind(q.word(auditKind)),
		From: job.MicrosOf(from), To: job.MicrosOf(to),
	}

	var err error
	if f.JobID, err = s.onlyJob(r.Context(), q); err != nil {
		return err
	}

	f.Apps = auth.Of(r.Context()).Sees()
	f.Limit = q.limit()
	if c := q.cursor("audit"); c != nil {
		f.After = c.place()
	}
	if err := q.err(); err != nil {
		return err
	}

	found, err := audit.List(s.cfg.DB.Reader(r.Context()), f)
	if err != nil {
		return err
	}

	p := view.Page[*view.AuditEntry]{Items: []*view.AuditEntry{}}
	if found.Next != nil {
		p.Next = (&cursor{list: "audit", RunPlace: runPlace(found.Next)}).String()
	}

	all := auth.Of(r.Context()).May(admin)
	for i := range found.Lines {
		e := &found.Lines[i]
		if e.Kind == job.KindAlertChannel && !all {
			e.Was, e.Became = hiddenChannel(e.Was), hiddenChannel(e.Became)
		}
		if e.Kind == job.KindJob {
			e.Was, e.Became = ifReadable(r.Context(), e.Was), ifReadable(r.Context(), e.Became)
		}
		p.Items = append(p.Items, viewOfEntry(e))
	}

	return answer(w, http.StatusOK, p)
}

const (
	// One request checks at most verifyAtOnce links, and takes at most verifyFor.
	verifyAtOnce = 5000
	verifyFor    = 5 * time.Second
)

// verifyAudit: GET /api/v1/audit/chain
func (s *Server) verifyAudit(w http.ResponseWriter, r *http.Request) error {
	q := newQuery(r)

	after, head := q.number(chainAfter), q.text(chainHead)
	var kept job.Link
	if head != "" {
		var err error
		if kept, err = job.ParseHead(head); err != nil {
			q.problems.Put(chainHead.name, problem.Of(err))
		}
	}

	if err := q.err(); err != nil {
		return err
	}

	v, err := audit.Verify(r.Context(), s.cfg.DB.DB, after, verifyAtOnce, audit.Kept, verifyFor)
	if err != nil {
		return err
	}

	out := view.AuditChain{Links: v.Links, Faults: []view.AuditFault{}}
	if v.Links > 0 {
		out.From, out.To = viewOfLink(v.From), viewOfLink(v.To)
	}
	if v.Next != 0 {
		out.Next = &v.Next
	}

	for _, f := range v.Faults {
		out.Faults = append(out.Faults, view.AuditFault{Seq: f.Seq, Line: strconv.FormatInt(f.Line, 10), What: f.What})
	}

	if head != "" {
		what, err := audit.CheckHead(r.Context(), s.cfg.DB.DB, kept, audit.Kept)
		if err != nil {
			return err
		}
		if what != "" {
			out.Faults = append(out.Faults, view.AuditFault{Seq: kept.Seq, What: what})
		}
	}

	return answer(w, http.StatusOK, out)
}

func viewOfLink(l job.Link) *view.AuditLink {
	return &view.AuditLink{Seq: l.Seq, At: l.At.Time(), Head: l.Head()}
}
