package api

import (
	"encoding/json"
	"net/http"
	"strconv"

	"go-crontab/auth"
	"go-crontab/job"
	"go-crontab/sql"
)

// auditView is a line of the audit as clients see it.
type auditView struct {
	ID     string          `json:"id" doc:"Its id, a number."`
	At     string          `json:"at" format:"date-time" doc:"When the change was made."`
	Who    string          `json:"who" doc:"Who made it."`
	Origin string          `json:"origin,omitempty" doc:"From where: an address."`
	Action job.Action      `json:"action" doc:"What was done, such as 'create', 'update', 'pause' or 'kill'."`
	Kind   job.Kind        `json:"kind" doc:"To what kind of thing, such as 'job', 'app', 'calendar' or 'node'."`
	JobID  string          `json:"job_id,omitempty" doc:"The id of the job, if it was one."`
	App    string          `json:"app,omitempty" doc:"The app that it belongs to, or the app itself."`
	Name   string          `json:"name,omitempty" doc:"Its name."`
	Reason string          `json:"reason,omitempty" doc:"What was given for it."`
	Was    json.RawMessage `json:"was,omitempty" doc:"What it was before. Of the address of a channel of alerts, who is no admin is shown no more than the host."`
	Became json.RawMessage `json:"became,omitempty" doc:"What it is since."`
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

// raw is a stored JSON text as it is, or as a text if it is none: a hand may have written it.
func raw(s string) json.RawMessage {
	if s == "" || json.Valid([]byte(s)) {
		return json.RawMessage(s)
	}
	b, _ := json.Marshal(s) // a text cannot fail
	return b
}

// hiddenChannel is the definition of a channel as who is no admin is shown it: see viewChannel.
func hiddenChannel(text string) string {
	var c job.AlertChannel
	if text == "" {
		return ""
	}
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		return "***" // nobody knows what is in it
	}
	hideSecrets(&c)
	b, _ := json.Marshal(&c) // plain values cannot fail
	return string(b)
}

// listAudit: GET /api/v1/audit, the latest first.
func (s *Server) listAudit(w http.ResponseWriter, r *http.Request) error {
	q := newQuery(r)
	f := sql.AuditFilter{
		App: q.text(ofAppParam), JobID: q.number(ofJobParam), Name: q.text(auditName), Who: q.text(auditWho),
		Action: job.Action(q.text(auditAction)), Kind: job.Kind(q.text(auditKind)),
		From: job.MicrosOf(q.instant(auditFrom)), To: job.MicrosOf(q.instant(auditBefore)),
	}
	f.Apps = auth.Of(r.Context()).Sees()
	f.Limit = q.limit()
	if c := q.cursor("audit"); c != nil {
		f.After = &c.RunPlace
	}
	if err := q.err(); err != nil {
		return err
	}
	found, err := s.cfg.DB.Audit(r.Context(), f)
	if err != nil {
		return err
	}
	p := page[*auditView]{Items: []*auditView{}}
	if found.Next != nil {
		p.Next = (&cursor{list: "audit", RunPlace: *found.Next}).String()
	}
	all := auth.Of(r.Context()).May(admin)
	for i := range found.Lines {
		e := &found.Lines[i]
		if e.Kind == job.KindAlertChannel && !all {
			e.Was, e.Became = hiddenChannel(e.Was), hiddenChannel(e.Became)
		}
		p.Items = append(p.Items, viewOfEntry(e))
	}
	return answer(w, http.StatusOK, p)
}
