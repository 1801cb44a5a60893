package job

import (
	"encoding/json"
	"time"
)

// Entry is an audit line: a committed change, its author, and the values before and after.
type Entry struct {
	ID int64 // roughly in the order of the changes
	At Micros
	Actor
	Action Action
	Kind   Kind   // of the changed object
	Ref    int64  // its id, if it has one
	App    string // of a job, or the app itself
	Name   string
	Reason string // the user's reason, one line
	Was    string // the value before, as JSON; may be ""
	Became string // the value after, as JSON; may be ""
}

// Kind is the kind of a changed object.
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

// Action is the kind of a change.
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
	ActionReap     Action = "reap"   // of a dead session, by a peer or its guard
	ActionLeave    Action = "leave"  // of a session that ended normally
	ActionFence    Action = "fence"  // of a session that lost its lease and killed its commands
	ActionReset    Action = "reset"  // of runs of a dead session, which become lost
	ActionBreak    Action = "break"  // of a job that can no longer be planned
	ActionVoid     Action = "void"   // a change that was not made; its commit had been unknown
)

// SessionLife is what an audit line says about a dead session, as JSON. The session may have
// started runs between the two instants.
type SessionLife struct {
	Session  string    `json:"session"`
	Started  time.Time `json:"started"`
	LastBeat time.Time `json:"last_beat"`
}

// PauseUntil returns the end of a pause, or zero if the pause has none.
func (e *Entry) PauseUntil() Micros {
	var became struct {
		Until time.Time `json:"until"`
	}
	if json.Unmarshal([]byte(e.Became), &became) != nil {
		return 0
	}
	return MicrosOf(became.Until)
}
