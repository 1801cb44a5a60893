package job

import "hash/fnv"

// Job is a definition and what the cluster knows about it.
type Job struct {
	ID       int64
	Spec     Spec
	Version  int64  // of its definition
	Changes  int32  // how often people have changed it
	Hash     int    // drawn at its creation
	Paused   bool   // by somebody, it alone
	PausedAt Micros // since when, while it is paused
	Deleted  bool
	NextDue  Micros // the cursor: the first due time without a run; zero: none. Of a paused job: when its pause ends by itself
	LastDue  Micros // latest due time whose run has begun or ended; only grows
	Error    string // why no due time can be computed, "" when all is well
	Created  Micros
	Updated  Micros

	PausedBy    string // of a paused job
	PauseReason string
	PauseUntil  Micros  // when its pause ends by itself; zero: it does not
	Covers      []Pause // of its app and of the cluster, as of the reading of its row
}

// Status is what people see of a job's life.
type Status string

// The statuses.
const (
	Active   Status = "active"
	Paused   Status = "paused"
	Finished Status = "finished" // has no due time left
	Broken   Status = "error"    // its stored definition cannot be planned
)

// Status derives the status. live tells whether the job has runs of its schedule that did not end yet.
func (j *Job) Status(live bool, now Micros) Status {
	switch {
	case j.Error != "":
		return Broken
	case j.PauseAt(now) != nil:
		return Paused
	case j.NextDue == 0 && !live:
		return Finished
	}
	return Active
}

// Hashes is the number of hash values of jobs. A node's share of them is a range, so the number of nodes may change without a row
// being rewritten.
const Hashes = 1024

// HashOf spreads jobs evenly over [0, Hashes). It is drawn once, at creation, and kept through renames; all
// runs of a job share it.
func HashOf(app, name string) int {
	h := fnv.New64a()
	h.Write([]byte(app))
	h.Write([]byte{0})
	h.Write([]byte(name))
	return int(h.Sum64() * 0x9E3779B97F4A7C15 >> 54) // the multiplication spreads what FNV leaves in the low bits
}
