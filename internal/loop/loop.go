// Package loop runs the loops of a node: a step, a pause, the next step.
package loop

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"time"
)

// Loop says when the steps of a loop come, and how their errors are logged.
type Loop struct {
	First  time.Duration // the pause before the first step, see Jitter
	Period time.Duration // the pause after a step
	Retry  time.Duration // the pause after a failed step; zero: Period
	AtRate bool          // a pause counts from the beginning of the step before it
	Wake   Wake          // ends a pause

	Log    *slog.Logger
	Failed string // the warning when steps begin to fail: "cannot read the limits of apps, trying again"
}

// Step takes one step. woken reports whether a wake ended the pause before the step. If the step
// returns a zero pause, the loop chooses the next pause.
type Step func(ctx context.Context, woken bool) (pause time.Duration, err error)

// AtOnce is the pause that a step returns if the next step shall follow at once.
const AtOnce = time.Nanosecond

// ErrSkipped is the error of a step that had nothing to do. It is not a failure. After failures,
// it is also no proof that steps work again.
var ErrSkipped = errors.New("skipped")

// Each returns a step that leaves all pauses to the loop.
func Each(step func(context.Context) error) Step {
	return func(ctx context.Context, _ bool) (time.Duration, error) { return 0, step(ctx) }
}

// Jitter returns a random part of a period, so that nodes that start together do not march in step.
func Jitter(period time.Duration) time.Duration { return rand.N(max(1, period)) }

// Run takes steps until ctx ends, and returns the cause of ctx.
func (l Loop) Run(ctx context.Context, step Step) error {
	pause := time.NewTimer(l.First)
	defer pause.Stop()

	errs := errorLog{log: l.Log, failed: l.Failed}
	for {
		woken := false
		select {
		case <-ctx.Done():
		case <-pause.C:
		case <-l.Wake:
			woken = true
		}
		if ctx.Err() != nil { // checked again, because the pause and ctx may have ended at the same time
			return context.Cause(ctx)
		}

		began := time.Now()
		wanted, err := step(ctx, woken)
		switch {
		case err == ErrSkipped:
			err = nil
		case ctx.Err() == nil: // if ctx has ended, the error is probably a consequence
			errs.note(err)
		}
		pause.Reset(l.pause(wanted, err, began))
	}
}

// pause returns the pause after a step that began at an instant.
func (l *Loop) pause(wanted time.Duration, err error, began time.Time) time.Duration {
	switch {
	case wanted > 0:
		return wanted
	case err != nil && l.Retry > 0:
		wanted = l.Retry
	default:
		wanted = l.Period
	}

	if l.AtRate {
		wanted -= time.Since(began)
	}
	return wanted
}

// WorksAgain is the log line when steps work again. Its attribute Warning repeats the earlier
// warning.
const (
	WorksAgain = "works again"
	Warning    = "warning"
)

// errorLog logs when steps begin to fail, when they fail for another reason, and when they succeed
// again.
type errorLog struct {
	log    *slog.Logger
	failed string

	since time.Time // of the first consecutive error; zero: the last step succeeded
	last  string    // the last error
}

func (e *errorLog) note(err error) {
	switch {
	case err == nil && !e.since.IsZero():
		e.log.Info(WorksAgain, "after", time.Since(e.since).Round(time.Millisecond), Warning, e.failed)
		e.since, e.last = time.Time{}, ""
	case err == nil:
	case err.Error() != e.last:
		e.log.Warn(e.failed, "error", err)
		e.last = err.Error()
	}
	if err != nil && e.since.IsZero() {
		e.since = time.Now()
	}
}
