package job

import "hash/fnv"

// Job is a definition with its state in the cluster.
type Job struct {
	ID       int64
	Spec     Spec
	Version  int64  // of the definition
	Changes  int32  // number of changes by people
	Hash     int    // fixed at creation
	Paused   bool   // the job itself is paused, not only its app or the cluster
	PausedAt Micros // start of the pause, while paused
	Deleted  bool
	NextDue  Micros // the cursor: the first due time without a run, zero: none; if paused, the end of the pause
	LastDue  Micros // latest due time whose run has begun or ended; it only grows
	Error    string // why no due time can be computed, or ""
	Created  Micros
	Updated  Micros

	PausedBy    string // while paused
	PauseReason string
	PauseUntil  Micros  // when the pause ends by itself; zero: never
	Covers      []Pause // pauses of its app and of the cluster, as of the read of its row
}

// Status summarizes the state of a job for people.
type Status string

// The statuses.
const (
	Active   Status = "active"
	Paused   Status = "paused"
	Finished Status = "finished" // has no due time left
	Broken   Status = "error"    // its stored definition cannot be planned
)

// Status derives the status. live reports whether the job's schedule has a run that has not ended.
func (j *Job) Status(live bool, now Micros) Status {
	switch {
	case j.Error != "":
		return Broken
	case j.PauseAt(now) != nil:
		return Paused
	case j.NextDue == 0 && !live && !j.awaitsEnds(now) && !j.Spec.Manual:
		return Finished
	}
	return Active
}

// awaitsEnds reports whether the end of another run may still make the job due.
func (j *Job) awaitsEnds(now Micros) bool {
	s := &j.Spec
	return s.After != nil || s.Delay != 0 && (s.End == nil || MicrosOf(*s.End) >= now)
}

// Hashes is the number of hash values of jobs. Each node takes a range of values, so no row is
// rewritten when the number of nodes changes.
const Hashes = 1024

// HashOf spreads jobs evenly over [0, Hashes). A job gets its value when it is created, and keeps
// the value when it is renamed. All runs of the job share the value.
func HashOf(app, name string) int {
	h := fnv.New64a()
	h.Write([]byte(app))
	h.Write([]byte{0})
	h.Write([]byte(name))
	return int(h.Sum64() * 0x9E3779B97F4A7C15 >> 54) // spread FNV's low bits by a multiplication
}
