package job

import (
	"encoding/json"
	"time"
)

// Entry is one line of the audit: a change that stands, who made it, and what it made of what.
type Entry struct {
	ID int64 // in the order in which the changes were made, or nearly
	At Micros
	Actor
	Action Action
	Kind   Kind   // of what was changed
	Ref    int64  // its id, if it has one
	App    string // of a job, or the app itself
	Name   string
	Reason string // what was given for it, one line
	Was    string // what it was before, as JSON, "" when there is nothing to say
	Became string // and what it is since
}

// Kind says what a change was made to.
type Kind string

// The kinds. Other packages may have more.
const (
	KindJob     Kind = "job"
	KindApp     Kind = "app"
	KindCluster Kind = "cluster"

	KindRetention Kind = "retention"
	KindLimits    Kind = "limits" // of an app
	KindSession   Kind = "session"
)

// Action says what was done.
type Action string

// The actions. Other packages may have more.
const (
	ActionCreate   Action = "create"
	ActionUpdate   Action = "update"
	ActionRollback Action = "rollback" // an update to an earlier definition
	ActionDelete   Action = "delete"
	ActionPause    Action = "pause"
	ActionResume   Action = "resume"
	ActionRun      Action = "run"
	ActionKill     Action = "kill"
	ActionBackfill Action = "backfill"
	ActionCancel   Action = "cancel" // of a backfill
	ActionReap     Action = "reap"   // of a session that vanished, by a peer or its guard
	ActionLeave    Action = "leave"  // of a session that ended as it should
	ActionFence    Action = "fence"  // of a session that lost its lease and killed its commands
	ActionReset    Action = "reset"  // of runs whose session is gone: they end lost
	ActionBreak    Action = "break"  // of a job that cannot be planned any more
	ActionVoid     Action = "void"   // a change whose commit was not confirmed, and which was not made
)

// SessionLife is what the audit keeps, as JSON, of a session that is gone: between the two instants it may have
// started something.
type SessionLife struct {
	Session  string    `json:"session"`
	Started  time.Time `json:"started"`
	LastBeat time.Time `json:"last_beat"`
}

// PauseUntil is the end that a pause was given, zero if it has none.
func (e *Entry) PauseUntil() Micros {
	var became struct {
		Until time.Time `json:"until"`
	}
	if json.Unmarshal([]byte(e.Became), &became) != nil {
		return 0
	}
	return MicrosOf(became.Until)
}
