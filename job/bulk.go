package job

import "go-crontab/job/problem"

// Bulk is a wish to do the same to several jobs.
type Bulk struct {
	Action Action // ActionPause, ActionResume, ActionRun or ActionDelete
	Pause  PauseRequest
	Jobs   []Seen // each once

	// Done is what it has come to, in the order of Jobs. Whoever makes the change fills it within the transaction.
	Done []Bulked
}

// Seen is a job as it was found: a change of one that has been changed since is refused.
type Seen struct {
	ID      int64
	Changes int32 // how often people had changed it
}

// Bulked is what became of one job.
type Bulked struct {
	Result  BulkResult
	Why     problem.Text // it was refused
	Version int64        // at which the job is; zero if it is deleted, or not there
	Request int64        // of the run that was asked for
}

// BulkResult says what became of a job.
type BulkResult string

// The results.
const (
	BulkChanged   BulkResult = "changed"
	BulkUnchanged BulkResult = "unchanged" // it was so already
	BulkRefused   BulkResult = "refused"
)

// Refused is what becomes of a job that is left as it is.
func Refused(why problem.Text) Bulked { return Bulked{Result: BulkRefused, Why: why} }

// Of tells what there is to do about a job, with the error that reading its definition gave. What only doing it shows is
// not told.
func (b *Bulk) Of(j *Job, unreadable error) Bulked {
	out := Bulked{Result: BulkChanged, Version: j.Version}
	switch b.Action {
	case ActionPause:
		if !b.Pause.Alters(j) {
			out.Result = BulkUnchanged
		}
	case ActionResume: // its due times are up to claims
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

// Alters tells whether the wish changes a job: it is not paused, or for another reason or until another instant.
func (r PauseRequest) Alters(j *Job) bool {
	return !j.Paused || r != PauseRequest{} && r != PauseRequest{Reason: j.PauseReason, Until: j.PauseUntil}
}
