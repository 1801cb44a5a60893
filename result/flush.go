package result

import (
	"context"
	"time"
)

// Flush writes the ends that wait until none is left or ctx is over.
func (r *Recorder) Flush(ctx context.Context) {
	for r.Waiting() > 0 && ctx.Err() == nil {
		busy, err := r.finish(ctx)
		if !busy && err == nil {
			continue
		}
		select {
		case <-ctx.Done():
		case <-time.After(r.batch.Pause()):
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
