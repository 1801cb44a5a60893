package view

import (
	"encoding/json"
	"time"

	"go-crontab/job"
)

// AuditEntry is an audit line as clients see it.
type AuditEntry struct {
	ID     string          `json:"id" doc:"Its id, a number."`
	At     time.Time       `json:"at" doc:"When the change was made."`
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

// AuditChain is the result of checking a part of the hash chain.
type AuditChain struct {
	From   *AuditLink   `json:"from,omitempty" doc:"The first link that was checked. Absent if there is none."`
	To     *AuditLink   `json:"to,omitempty" doc:"The last link that was checked."`
	Links  int          `json:"links" doc:"How many links were checked."`
	Next   *int64       `json:"next,omitempty" doc:"The value of 'after' for the next request. Absent if all links were checked."`
	Faults []AuditFault `json:"faults" doc:"Where the audit differs from the chain, at most about fifty places."`
}

type AuditLink struct {
	Seq  int64     `json:"seq" doc:"Its number, from 1."`
	At   time.Time `json:"at" doc:"When its audit line was written."`
	Head string    `json:"head" doc:"Its number and hash. Keep it outside the cluster, and give it to later requests as 'head'."`
}

type AuditFault struct {
	Seq  int64  `json:"seq" doc:"The number of the link."`
	Line string `json:"line,omitempty" doc:"The id of its audit line."`
	What string `json:"what" doc:"What is wrong."`
}
