package job

// Started is a run with a committed start, and everything needed to execute it.
type Started struct {
	Launch
	JobID   int64
	Kind    RunKind
	Request int64 // the request that made it; zero: the schedule
	Attempt int
	Given   *Given // nil: nothing
	Due     Micros // the scheduled time
	DueNow  Micros // when to start it: Due, or later
	Spec    *Spec  // its definition; read-only
	At      Micros // when the start was committed
	SpawnBy Micros // nothing may be spawned for it after this instant
}

// SpawnWindow is the time for spawning an attempt after its due time or, if that is later, its
// start. The window is longer where MySQL is far away. Pausing, editing or deleting a job waits
// until the windows of its runs have passed.
const SpawnWindow = 1_000_000 // microseconds
