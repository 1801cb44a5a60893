package api

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"go-crontab/internal/audit"
	"go-crontab/internal/auth"
	"go-crontab/job"
	"go-crontab/job/problem"
)

// auditView is a line of the audit as clients see it.
type auditView struct {
	ID     string          `json:"id" doc:"Its id, a number."`
	At     string          `json:"at" format:"date-time" doc:"When the change was made."`
	Who    string          `json:"who" doc:"Who made it."`
	Origin string          `json:"origin,omitempty" doc:"The address that the request came from."`
	Action job.Action      `json:"action" doc:"The action, such as 'create', 'update', 'pause' or 'kill'."`
	Kind   job.Kind        `json:"kind" doc:"The kind of object, such as 'job', 'app', 'calendar' or 'node'."`
	JobID  string          `json:"job_id,omitempty" doc:"The id of the job, if the object is one."`
	App    string          `json:"app,omitempty" doc:"The app of the object, or the app itself."`
	Name   string          `json:"name,omitempty" doc:"The name of the object."`
	Reason string          `json:"reason,omitempty" doc:"The reason that was given."`
	Was    json.RawMessage `json:"was,omitempty" doc:"The object before the change. Only admins see the full address of an alert channel; others see its host."`
	Became json.RawMessage `json:"became,omitempty" doc:"The object after the change."`
}

func viewOfEntry(e *job.Entry) *auditView {
	v := &auditView{
		ID: strconv.FormatInt(e.ID, 10), At: stamp(e.At), Who: e.Who, Origin: e.Origin, Action: e.Action, Kind: e.Kind,
		App: e.App, Name: e.Name, Reason: e.Reason, Was: raw(e.Was), Became: raw(e.Became),
	}
	if e.Kind == job.KindJob && e.Ref != 0 {
		v.JobID = strconv.FormatInt(e.Ref, 10)
	}
	return v
}

// raw returns stored JSON as it is. A value that is not JSON, perhaps edited by hand, becomes a
// JSON string.
func raw(s string) json.RawMessage {
	if s == "" || json.Valid([]byte(s)) {
		return json.RawMessage(s)
	}
	b, _ := json.Marshal(s) // a text cannot fail
	return b                // marshalling a string cannot fail
}

// hiddenChannel is the definition of a channel as shown to callers that are not admins: see
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

// ifReadable returns the definition of a job if the caller may read its app; otherwise "". The
// audit line of a move holds the definition in the earlier app, too.
func ifReadable(ctx context.Context, spec string) string {
	if app := appIn(spec); app != "" && !mayRead(ctx, app) {
		return ""
	}
	return spec // or another text, such as the end of a pause
}

// auditKinds and auditActions list the words that audit lines can have. Any other word in a filter
// is a mistake, not a filter without matches.
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
	f := audit.Filter{
		App: q.text(ofAppParam), JobID: q.number(ofJobParam), Name: q.text(auditName), Who: q.text(auditWho),
		Action: job.Action(q.word(auditAction)), Kind: job.Kind(q.word(auditKind)),
		From: job.MicrosOf(q.instant(auditFrom)), To: job.MicrosOf(q.instant(auditBefore)),
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

	p := page[*auditView]{Items: []*auditView{}}
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

// chainView is the result of checking a part of the hash chain.
type chainView struct {
	From   *linkView   `json:"from,omitempty" doc:"The first link that was checked. Absent if there is none."`
	To     *linkView   `json:"to,omitempty" doc:"The last link that was checked."`
	Links  int         `json:"links" doc:"How many links were checked."`
	Next   *int64      `json:"next,omitempty" doc:"The value of 'after' for the next request. Absent if all links were checked."`
	Faults []faultView `json:"faults" doc:"Where the audit differs from the chain, at most about fifty places."`
}

type linkView struct {
	Seq  int64  `json:"seq" doc:"Its number, from 1."`
	At   string `json:"at" format:"date-time" doc:"When its audit line was written."`
	Head string `json:"head" doc:"Its number and hash. Keep it outside the cluster, and give it to later requests as 'head'."`
}

type faultView struct {
	Seq  int64  `json:"seq" doc:"The number of the link."`
	Line string `json:"line,omitempty" doc:"The id of its audit line."`
	What string `json:"what" doc:"What is wrong."`
}

const (
	// verifyAtOnce and verifyFor limit the links that one request checks, and the time that it
	// takes.
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

	out := chainView{Links: v.Links, Faults: []faultView{}}
	if v.Links > 0 {
		out.From, out.To = viewOfLink(v.From), viewOfLink(v.To)
	}
	if v.Next != 0 {
		out.Next = &v.Next
	}

	for _, f := range v.Faults {
		out.Faults = append(out.Faults, faultView{f.Seq, strconv.FormatInt(f.Line, 10), f.What})
	}

	if head != "" {
		what, err := audit.CheckHead(r.Context(), s.cfg.DB.DB, kept, audit.Kept)
		if err != nil {
			return err
		}
		if what != "" {
			out.Faults = append(out.Faults, faultView{Seq: kept.Seq, What: what})
		}
	}

	return answer(w, http.StatusOK, out)
}

func viewOfLink(l job.Link) *linkView { return &linkView{l.Seq, stamp(l.At), l.Head()} }
