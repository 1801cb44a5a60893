package result

import (
	"context"
	"go-crontab/sql"
	"go-crontab/sql/trip"
	"time"
)

// flushPause is how long Flush waits after a try that left ends for later.
const flushPause = 50 * time.Millisecond

// Flush writes the ends that wait until none is left or ctx is over.
func (r *Recorder) Flush(ctx context.Context) {
	for r.Waiting() > 0 && ctx.Err() == nil {
		busy, err := r.finish(ctx)
		if !busy && err == nil {
			continue
		}
		select {
		case <-ctx.Done():
		case <-time.After(flushPause):
		}
	}
}

// Age is how long ago the end came that has waited longest; zero if none waits.
func (r *Recorder) Age() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.waiting) == 0 {
		return 0
	}
	return max(0, r.Session.Now().Sub(r.waiting[0].Ended))
}

// noteFailure learns how a transaction ended. One that leaves ends for later, because rows are locked, does not fail.
func (r *Recorder) noteFailure(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pause = r.batch.Pause()
	switch {
	case err == nil || r.batch.Culprit() || sql.IsLockWait(err):
		r.failing = time.Time{}
	case r.failing.IsZero():
		r.failing = time.Now()
	}
}

// pauseAfterFailure is how long Run waits after a transaction that failed.
func (r *Recorder) pauseAfterFailure() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.pause
}

// isKept reports whether somebody had locked a row that the end of a run needs, at the last try.
func (r *Recorder) isKept(l trip.Launch) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.kept[l]
}

// FailingFor is how long every transaction of the recorder has failed; zero: the last one did not.
func (r *Recorder) FailingFor() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failing.IsZero() {
		return 0
	}
	return time.Since(r.failing)
}
