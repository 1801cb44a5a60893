package job

// Started is a run with a committed start, and everything needed to execute it.
type Started struct {
	Launch
	JobID   int64
	Kind    RunKind
	Request int64 // the request that made the run; zero: the schedule
	Attempt int
	Given   *Given // nil: nothing
	Due     Micros // the scheduled time
	DueNow  Micros // when to start it: Due, or later
	Spec    *Spec  // its definition; read-only
	At      Micros // when the start was committed
	SpawnBy Micros // nothing may be spawned for it after this instant
}

// SpawnWindow is how long an attempt may be spawned after its due time or after its start,
// whichever is later. The window is longer where MySQL is far away. A pause, edit or deletion of a
// job waits until the windows of its runs have passed.
const SpawnWindow = 1_000_000 // microseconds
