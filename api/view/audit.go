package view

import (
	"encoding/json"
	"time"

	"go-crontab/job"
)

// AuditEntry is a line of the audit as clients see it.
type AuditEntry struct {
	ID     string          `json:"id" doc:"Its id, a number."`
	At     time.Time       `json:"at" doc:"When the change was made."`
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

// AuditChain is the result of checking a part of the hash chain.
type AuditChain struct {
	From   *AuditLink   `json:"from,omitempty" doc:"The first link that was looked at. Absent: there is none."`
	To     *AuditLink   `json:"to,omitempty" doc:"The last one."`
	Links  int          `json:"links" doc:"How many were looked at."`
	Next   *int64       `json:"next,omitempty" doc:"Ask for what is behind this link next. Absent: that was all."`
	Faults []AuditFault `json:"faults" doc:"Where the audit is not what was chained, at most some fifty places."`
}

type AuditLink struct {
	Seq  int64     `json:"seq" doc:"Its number, from 1."`
	At   time.Time `json:"at" doc:"When its audit line was written."`
	Head string    `json:"head" doc:"Its number and hash, to be kept outside the cluster: later requests take it as 'head'."`
}

type AuditFault struct {
	Seq  int64  `json:"seq" doc:"The number of the link."`
	Line string `json:"line,omitempty" doc:"The id of its audit line."`
	What string `json:"what" doc:"What is wrong."`
}
