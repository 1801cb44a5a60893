package job

import (
	"time"

	"go-crontab/job/problem"
)

// Misfire says what happens to due times that nobody could start in time.
type Misfire struct {
	Policy MisfirePolicy `json:"policy,omitempty"`
	// After is how late a due time is before the policy applies. Zero means the default: [MisfireAfter].
	After Duration `json:"after,omitempty"`
	// MaxAge bounds how late one may still be started. Zero means the default: [DefaultMaxAge].
	MaxAge Duration `json:"max_age,omitempty"`
	// MaxCount is how many of those that passed during an outage or a pause are started under the policy all: the
	// latest ones.
	MaxCount int `json:"max_count,omitempty"`
}

// MisfirePolicy names what to do with missed due times.
type MisfirePolicy string

// The misfire policies.
const (
	MisfireLatest MisfirePolicy = "latest" // start the latest one, the earlier ones end missed
	MisfireSkip   MisfirePolicy = "skip"   // all end missed
	MisfireAll    MisfirePolicy = "all"    // start the latest so many, one after the other unless they may overlap
)

// Defaults and bounds of misfires.
const (
	MisfireAfter  = 60 * time.Second // a due time that is later than this is missed
	DefaultMaxAge = time.Hour

	DefaultMaxCount = 100
	MaxMaxCount     = 1000

	minMisfireAfter = time.Second
	maxMisfireAfter = 24 * time.Hour
)

// MissedAfter is how late a due time of the job is before its misfire policy applies.
func (s *Spec) MissedAfter() time.Duration {
	if s.Misfire.After > 0 {
		return time.Duration(s.Misfire.After)
	}
	return MisfireAfter
}

// CatchUp is how many of the due times that passed during an outage or a pause may be started at most.
func (s *Spec) CatchUp() int {
	switch {
	case s.Misfire.Policy != MisfireAll:
		return 1
	case s.Misfire.MaxCount > 0:
		return s.Misfire.MaxCount
	}
	return DefaultMaxCount
}

// PastAt says why the single due time of a job ("at") comes too late to be started: the values of problem.AtTooLate, of
// which the last is the field that would allow it. It is nil if it can be started, or if the job has no single due time.
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

// latestStart is how late a due time may be started while no later one has passed, and which field says so.
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

// SameAt reports whether two definitions have the same single due time, or none.
func (s *Spec) SameAt(other *Spec) bool {
	if s.At == nil || other.At == nil {
		return s.At == other.At
	}
	return s.At.Equal(*other.At)
}

// CheckPastAt refuses a single due time that comes too late to be started. Where nobody has typed it just now, as in an
// apply of files, it is not refused, and ends missed.
func (s *Spec) CheckPastAt(now time.Time) error {
	values := s.PastAt(now)
	if values == nil {
		return nil
	}
	field := values[len(values)-1]
	return Wrong("at", problem.AtTooLate.Advise(
		"to run it at once, give the present instant (job add --now); to start it this late, raise %s", field), values...)
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
		p.Add("misfire.max_count", problem.OnlyWith.Advise("%s starts at most one", m.Policy), problem.Shown("all", "policy all"))
	}
}
