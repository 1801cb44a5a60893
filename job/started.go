package job

// Started is a run whose start is committed: all that is needed to execute it.
type Started struct {
	Launch
	JobID   int64
	Kind    RunKind
	Request int64 // who asked for it; zero: the schedule
	Attempt int
	Due     Micros // the scheduled time
	DueNow  Micros // when to start it: Due, or later
	Spec    *Spec  // the definition that it begins under; not to be changed
	At      Micros // when the start was committed
	SpawnBy Micros // nothing may be spawned for it after this instant
}

// SpawnWindow is how long after its due time, or its start if that is later, an attempt may be spawned: longer where MySQL is far
// away. Whoever pauses, edits or deletes a job waits until the windows of its runs have passed.
const SpawnWindow = 1_000_000 // microseconds
