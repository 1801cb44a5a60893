package job

// Started is a task whose start is committed: all that there is to know to execute one attempt of it.
type Started struct {
	Task
	Spec    *Spec  // the definition that the start read; not to be changed
	At      Micros // when the start was committed
	SpawnBy Micros // after this instant nothing may be spawned for it
}

// SpawnWindow is for how long after its due instant, or its start if that is later, an attempt may be spawned: longer
// where MySQL is far away. Whoever pauses, edits or deletes a job waits until the windows of its attempts have passed.
const SpawnWindow = 1_000_000 // microseconds
