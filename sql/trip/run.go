package trip

import (
	"strconv"

	"go-crontab/job"
)

// State is the state of a run, in the same words as in its row.
type State = job.State

// States.
const (
	Idle      = job.Idle
	Prepared  = job.Prepared
	Executing = job.Executing
	Waiting   = job.Waiting
	Ended     = job.Ended
)

// Kind is the origin of a run.
type Kind = job.RunKind

// Kinds.
const (
	Schedule = job.FromSchedule
	Manual   = job.Manual
	Backfill = job.FromBackfill
	After    = job.FromUpstream
)

// Owner is the number of the session that holds a run, or one of the fixed owners. The owner of an
// executing or prepared run is a session.
type Owner int32

// Fixed owners.
const (
	NoOwner      Owner = 0  // idle: any session may take it
	WaitingOwner Owner = -1 // waiting: the end of the awaited run wakes it
	EndedOwner   Owner = -2
)

// String returns the owner as a statement spells it.
func (o Owner) String() string { return strconv.Itoa(int(o)) }

// Launch is the fencing token of a run.
type Launch = job.Launch

// Run is a run that has not ended.
type Run struct {
	Launch
	JobID    int64
	AppID    int32
	Version  int32 // the version of the definition that gave the due time
	Kind     Kind
	Request  int64 // see run.request
	Attempt  int
	Given    *job.Given // nil: nothing
	Due      job.Micros
	DueNow   job.Micros // when it should start: Due, or later; for a waiting run: its place in the line
	Hash     int
	Rank     int   // the priority of its job, as the holding node knows it; not in the row
	Group    int32 // the group whose slot it holds; -g: an idle run that was woken for a slot of group g
	Watched  bool  // its end has consequences; set when it starts
	Gathered bool  // each of the jobs that it follows has ended
	Woken    bool  // it waited and its turn has come, or another run waits for it
}

// Job is the part of a job's row that transactions read.
type Job struct {
	ID       int64
	Version  int32
	Paused   bool
	Deleted  bool
	Crowded  bool
	NextDue  job.Micros // zero: none
	BegunTo  job.Micros
	Running  int64 // the run that has the turn; it may have ended
	Followed bool  // when a run of it ends, runs of other jobs may become due
}

// End is the end of an executing run.
type End struct {
	Launch
	JobID   int64
	Outcome job.Outcome
	Final   bool
	Again   job.Micros // when the next attempt should start; zero: no retry
	Started job.Micros
	Ended   job.Micros
	Exit    *int
	Signal  string
	Reason  job.Reason
	Output  job.Output
	Live    bool // pieces of its output may be in table chunk
}
