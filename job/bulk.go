package job

import "go-crontab/job/problem"

// Bulk is a request to make the same change to several jobs.
type Bulk struct {
	Action Action // ActionPause, ActionResume, ActionRun or ActionDelete
	Pause  PauseRequest
	Jobs   []Seen // without duplicates

	// Done lists the results in the order of Jobs. The code that makes the change fills it within
	// the transaction.
	Done []Bulked
}

// Seen is a job as the caller saw it. If the job has changed since, the change is refused.
type Seen struct {
	ID      int64
	Changes int32 // number of changes by people
}

// Bulked is the result for one job.
type Bulked struct {
	Result  BulkResult
	Why     problem.Text // why it was refused
	Version int64        // of the job; zero if it is deleted or missing
	Request int64        // of the requested run
}

// BulkResult is the kind of a result.
type BulkResult string

// The results.
const (
	BulkChanged   BulkResult = "changed"
	BulkUnchanged BulkResult = "unchanged" // already in the wanted state
	BulkRefused   BulkResult = "refused"
)

// Refused is the result for a job that stays unchanged.
func Refused(why problem.Text) Bulked { return Bulked{Result: BulkRefused, Why: why} }

// Of predicts the result for a job. unreadable is the error from reading the job's definition.
// Errors that occur only during the change are not predicted.
func (b *Bulk) Of(j *Job, unreadable error) Bulked {
	out := Bulked{Result: BulkChanged, Version: j.Version}
	switch b.Action {
	case ActionPause:
		if !b.Pause.Alters(j) {
			out.Result = BulkUnchanged
		}
	case ActionResume: // claims handle its due times
		if !j.Paused {
			out.Result = BulkUnchanged
		}
	case ActionRun:
		if unreadable != nil {
			return Refused(problem.Of(unreadable))
		}
	}

	return out
}

// Alters reports whether the pause would change the job. It would if the job is not paused, or if
// the reason or the end differs.
func (r PauseRequest) Alters(j *Job) bool {
	return !j.Paused || r != PauseRequest{} && r != PauseRequest{Reason: j.PauseReason, Until: j.PauseUntil}
}
