package result

import (
	"context"
	"go-crontab/sql"
	"go-crontab/sql/trip"
	"time"
)

// flushPause is the pause of Flush after a try that failed or postponed ends.
const flushPause = 50 * time.Millisecond

// Flush writes the waiting ends until none is left or ctx ends.
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

// Age returns the age of the oldest waiting end; zero if none waits.
func (r *Recorder) Age() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.waiting) == 0 {
		return 0
	}
	return max(0, r.Session.Now().Sub(r.waiting[0].Ended))
}

// noteFailure notes when the transactions began to fail. Two cases are no failures: an end that is
// postponed because its rows are locked, and a single end that MySQL refuses.
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

// pauseAfterFailure returns the pause of Run after a failed transaction.
func (r *Recorder) pauseAfterFailure() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.pause
}

// isKept reports whether the last try postponed this end because a row of its run, job or group
// was locked.
func (r *Recorder) isKept(l trip.Launch) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.kept[l]
}

// FailingFor returns the time for which all transactions of the recorder have failed. It is zero
// if the last transaction succeeded.
func (r *Recorder) FailingFor() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failing.IsZero() {
		return 0
	}
	return time.Since(r.failing)
}
