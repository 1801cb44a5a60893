package trip

import (
	"strconv"

	"go-crontab/job"
)

// State of a run, as its row says it.
type State = job.State

// States.
const (
	Idle      = job.Idle
	Prepared  = job.Prepared
	Executing = job.Executing
	Waiting   = job.Waiting
	Ended     = job.Ended
)

// Kind says where a run comes from.
type Kind = job.RunKind

// Kinds.
const (
	Schedule = job.FromSchedule
	Manual   = job.Manual
	Backfill = job.FromBackfill
)

// Owner is the number of the session that holds a run, or one of the fixed owners. The owner of an executing or prepared
// run is a session.
type Owner int32

// Fixed owners.
const (
	NoOwner      Owner = 0  // idle: any session may take it
	WaitingOwner Owner = -1 // waiting: whoever ends what it waits for wakes it
	EndedOwner   Owner = -2
)

// String is the owner as a statement spells it.
func (o Owner) String() string { return strconv.Itoa(int(o)) }

// Launch is the fencing token of a run.
type Launch = job.Launch

// Run is a run that has not ended.
type Run struct {
	Launch
	JobID   int64
	AppID   int32
	Version int32 // the definition that its due time comes from
	Kind    Kind
	Request int64
	Attempt int
	Due     job.Micros
	DueNow  job.Micros // when it is to start: Due, or later; while it waits, its place in the line
	Hash    int
	Rank    int   // the priority of its job, as the node that holds it knows it; in no row
	Group   int32 // while it is idle: below zero, it was woken for a slot of that group
	Woken   bool  // it waited, and its turn has come; or another run waits for it
}

// Job is what a transaction reads of a job's row.
type Job struct {
	ID      int64
	Version int32
	Paused  bool
	Deleted bool
	Crowded bool
	NextDue job.Micros // zero: none
	BegunTo job.Micros
	Running int64 // the run whose turn it is; it may have ended
}

// End is the end of an executing run.
type End struct {
	Launch
	JobID   int64
	Outcome job.Outcome
	Final   bool
	Again   job.Micros // when the next attempt is to start; zero: none follows
	Started job.Micros
	Ended   job.Micros
	Exit    *int
	Signal  string
	Reason  job.Reason
	Output  job.Output
	Live    bool // pieces of its output may be in table chunk
}
