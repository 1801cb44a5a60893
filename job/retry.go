package job

import (
	"math"
	"slices"
	"time"

	"go-crontab/job/problem"
)

// Retry says whether and when an attempt that did not succeed is followed by another. The zero Retry is one attempt.
type Retry struct {
	Attempts   int       `json:"attempts,omitempty"`    // starts in all, the first included; 0 and 1: no retry
	Backoff    Duration  `json:"backoff,omitempty"`     // from the end of an attempt to the next one
	Factor     float64   `json:"factor,omitempty"`      // each backoff is so many times the one before; 1 is constant
	MaxBackoff Duration  `json:"max_backoff,omitempty"` // and at most this
	Jitter     Duration  `json:"jitter,omitempty"`      // up to so much longer, at random
	On         []Outcome `json:"on,omitempty"`          // after which outcomes
}

// Bounds and defaults of retries.
const (
	MaxAttempts       = 100
	DefaultBackoff    = 10 * time.Second
	DefaultMaxBackoff = time.Hour
	longestBackoff    = 30 * 24 * time.Hour

	// LostAttempts is how often a due time is started at most where on_lost is rerun and retries allow less: a
	// command that takes its node with it must not wander through the cluster for ever.
	LostAttempts = 3
)

// What becomes of a run that is lost.
const (
	LostFail  = "fail"  // its due time is over: at most one start
	LostRerun = "rerun" // it is started again: at least one start, for commands that may run twice
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
			p.Add("retry.on", problem.NotOneOf.Advise("for lost there is on_lost"), o, "failed, timed_out, killed")
		}
	}
}

// Again tells whether the attempt of a number that ended with an outcome is followed by another, and after how long.
// spread is a random number in [0, 1).
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
