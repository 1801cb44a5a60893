package job

import (
	"time"

	"go-crontab/job/problem"
)

// Misfire is the policy for due times that no node could start in time.
type Misfire struct {
	Policy MisfirePolicy `json:"policy,omitempty"`
	// The policy applies to a due time that is at least this late. Zero means the default:
	// [MisfireAfter].
	After Duration `json:"after,omitempty"`
	// MaxAge bounds the delay of a late start. Zero means the default: [DefaultMaxAge].
	MaxAge Duration `json:"max_age,omitempty"`
	// MaxCount belongs to the policy all. Of the due times missed in an outage or a pause, only the
	// latest MaxCount are started.
	MaxCount int `json:"max_count,omitempty"`
}

// MisfirePolicy names a way to treat missed due times.
type MisfirePolicy string

// The misfire policies.
const (
	MisfireLatest MisfirePolicy = "latest" // start the latest, the earlier end missed
	MisfireSkip   MisfirePolicy = "skip"   // all end missed
	MisfireAll    MisfirePolicy = "all"    // start the latest MaxCount, one after the other unless they may overlap
)

// Defaults and bounds of misfires.
const (
	MisfireAfter  = 60 * time.Second // a due time delayed longer is missed
	DefaultMaxAge = time.Hour

	DefaultMaxCount = 100
	MaxMaxCount     = 1000

	minMisfireAfter = time.Second
	maxMisfireAfter = 24 * time.Hour
)

// MissedAfter is how late a due time of the job must be for the misfire policy to apply.
func (s *Spec) MissedAfter() time.Duration {
	if s.Misfire.After > 0 {
		return time.Duration(s.Misfire.After)
	}
	return MisfireAfter
}

// CatchUp is the largest number of due times to start after an outage or a pause.
func (s *Spec) CatchUp() int {
	switch {
	case s.Misfire.Policy != MisfireAll:
		return 1
	case s.Misfire.MaxCount > 0:
		return s.Misfire.MaxCount
	}
	return DefaultMaxCount
}

// PastAt returns nil if the job's single due time ("at") can still be started, or if the job has no
// "at". Otherwise it returns the values for problem.AtTooLate. The last value names the field that
// would allow the start.
func (s *Spec) PastAt(now time.Time) (values []any) {
	if s.At == nil {
		return nil
	}
	limit, field := s.latestStart()
	late := now.Sub(s.At.Add(s.shift()))
	if late <= limit {
		return nil
	}
	return []any{s.At.Format(time.RFC3339), roughly(late), Duration(limit), field}
}

// latestStart is how late a due time may start, if no later due time has passed. It also returns
// the field that sets this limit.
func (s *Spec) latestStart() (time.Duration, string) {
	limit, field := s.MissedAfter(), "misfire.after"
	if age := time.Duration(s.Misfire.MaxAge); s.Misfire.Policy != MisfireSkip && age > limit {
		limit, field = age, "misfire.max_age"
	}
	if d := time.Duration(s.StartDeadline); d > 0 && d < limit {
		limit, field = d, "start_deadline"
	}
	return limit, field
}

// SameAt reports whether two definitions have the same single due time. Two definitions without one
// are the same, too.
func (s *Spec) SameAt(other *Spec) bool {
	if s.At == nil || other.At == nil {
		return s.At == other.At
	}
	return s.At.Equal(*other.At)
}

// CheckPastAt refuses a single due time that is too late to be started. Applies of files skip this
// check, because the file may have been written long ago. There, such a due time becomes missed.
func (s *Spec) CheckPastAt(now time.Time) error {
	values := s.PastAt(now)
	if values == nil {
		return nil
	}
	field := values[len(values)-1]
	return Wrong("at", problem.AtTooLate.Advise(
		"to run it now, give the current time (job add --now); to start it this late, raise %s", field),
		values...)
}

func (s *Spec) misfireDefaults() {
	m := &s.Misfire
	if m.Policy == "" {
		m.Policy = MisfireLatest
	}

	if m.MaxAge == 0 && m.Policy != MisfireSkip {
		m.MaxAge = Duration(DefaultMaxAge)
	}

	if m.MaxCount == 0 && m.Policy == MisfireAll {
		m.MaxCount = DefaultMaxCount
	}
}

func (m *Misfire) validate(p *Problems) {
	switch m.Policy {
	case MisfireLatest, MisfireSkip, MisfireAll:
	default:
		p.Add("misfire.policy", problem.NotOneOf, m.Policy, "latest, skip, all")
	}

	if m.MaxAge < 0 {
		p.Add("misfire.max_age", problem.Negative, m.MaxAge)
	}

	if d := time.Duration(m.After); d != 0 && (d < minMisfireAfter || d > maxMisfireAfter) {
		p.Add("misfire.after", problem.NotBetween, m.After, Duration(minMisfireAfter), Duration(maxMisfireAfter))
	}

	switch {
	case m.MaxCount < 0 || m.MaxCount > MaxMaxCount:
		p.Add("misfire.max_count", problem.NotBetween, m.MaxCount, 1, MaxMaxCount)
	case m.MaxCount > 0 && m.Policy != MisfireAll:
		p.Add("misfire.max_count", problem.OnlyWith.Advise("the policy %s starts at most one", m.Policy),
			problem.Shown("all", "policy all"))
	}
}
