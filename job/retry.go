package job

import (
	"math"
	"slices"
	"time"

	"go-crontab/job/problem"
)

// Retry is the policy for attempts that did not succeed. The zero Retry allows one attempt.
type Retry struct {
	Attempts   int       `json:"attempts,omitempty"`    // all starts, including the first; 0 and 1: no retry
	Backoff    Duration  `json:"backoff,omitempty"`     // time from the end of an attempt to the next attempt
	Factor     float64   `json:"factor,omitempty"`      // growth of the backoff from attempt to attempt; 1 is constant
	MaxBackoff Duration  `json:"max_backoff,omitempty"` // the longest backoff
	Jitter     Duration  `json:"jitter,omitempty"`      // random addition, up to this
	On         []Outcome `json:"on,omitempty"`          // outcomes to retry
}

// Bounds and defaults of retries.
const (
	MaxAttempts       = 100
	DefaultBackoff    = 10 * time.Second
	DefaultMaxBackoff = time.Hour
	longestBackoff    = 30 * 24 * time.Hour

	// LostAttempts is the number of starts of a due time that on_lost: rerun allows if the job's
	// retries allow fewer. A command that crashes its node must not crash one node after the other.
	LostAttempts = 3
)

// The policies for lost runs.
const (
	LostFail  = "fail"  // at most one start
	LostRerun = "rerun" // start again: at least one start; only for commands that may run twice
)

func (r *Retry) defaults() {
	if r.Attempts <= 1 {
		return
	}

	if r.Backoff == 0 {
		r.Backoff = Duration(DefaultBackoff)
	}

	if r.Factor == 0 {
		r.Factor = 1
	}

	if r.MaxBackoff == 0 {
		r.MaxBackoff = Duration(max(DefaultMaxBackoff, time.Duration(r.Backoff)))
	}

	if len(r.On) == 0 {
		r.On = []Outcome{Failed, TimedOut}
	}
}

func (r *Retry) validate(p *Problems) {
	if r.Attempts < 0 || r.Attempts > MaxAttempts {
		p.Add("retry.attempts", problem.NotBetween, r.Attempts, problem.Shown(1, "1 (no retry)"), MaxAttempts)
	}

	if r.Attempts <= 1 {
		if r.Backoff != 0 || r.Factor != 0 || r.MaxBackoff != 0 || r.Jitter != 0 || len(r.On) > 0 {
			p.Add("retry.attempts", problem.NothingIsRetried, r.Attempts)
		}
		return
	}

	for field, d := range map[string]Duration{"backoff": r.Backoff, "max_backoff": r.MaxBackoff, "jitter": r.Jitter} {
		if d < 0 || time.Duration(d) > longestBackoff {
			p.Add("retry."+field, problem.NotBetween, d, 0, Duration(longestBackoff))
		}
	}

	if r.MaxBackoff < r.Backoff {
		p.Add("retry.max_backoff", problem.ShorterBackoff, r.MaxBackoff, r.Backoff)
	}

	if !(r.Factor >= 1 && r.Factor <= 100) {
		p.Add("retry.factor", problem.NotBetween, r.Factor, problem.Shown(1, "1 (constant)"), 100)
	}

	for _, o := range r.On {
		if o != Failed && o != TimedOut && o != Killed {
			p.Add("retry.on", problem.NotOneOf.Advise("for lost runs, use on_lost"), o, "failed, timed_out, killed")
		}
	}
}

// Again reports whether another attempt follows after an outcome. It also returns the delay before
// that attempt. attempt is the number of the ended attempt. spread is a random number in [0, 1).
func (s *Spec) Again(attempt int, o Outcome, spread float64) (after time.Duration, ok bool) {
	r := &s.Retry
	if o == Lost {
		return 0, s.OnLost == LostRerun && attempt < max(r.Attempts, LostAttempts)
	}
	if attempt >= r.Attempts || !slices.Contains(r.On, o) {
		return 0, false
	}
	backoff := min(float64(r.MaxBackoff), float64(r.Backoff)*math.Pow(r.Factor, float64(attempt-1)))
	return time.Duration(backoff + spread*float64(r.Jitter)).Truncate(time.Microsecond), true
}
