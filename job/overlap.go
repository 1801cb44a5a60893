package job

import (
	"time"

	"go-crontab/job/problem"
)

// Overlap is the policy for a due time that comes while an earlier run of the same job still
// executes, anywhere in the cluster.
type Overlap string

// The overlap policies.
const (
	OverlapSkip    Overlap = "skip"    // it ends skipped
	OverlapQueue   Overlap = "queue"   // it waits; the earliest due starts first
	OverlapReplace Overlap = "replace" // executing runs are killed, waiting ones superseded, and it starts
	OverlapAllow   Overlap = "allow"   // both run
)

// Bounds of waiting due times.
const (
	MaxQueue     = 1000
	DefaultQueue = 10  // with overlap queue
	defaultWaits = 100 // with other policies: due times that wait for the group or a catch-up

	MaxPriority = 100 // the lowest is -MaxPriority

	MinStartDeadline = time.Second
	MaxStartDeadline = 366 * 24 * time.Hour
)

// QueueMax is how many due times of the job may wait at once.
func (s *Spec) QueueMax() int {
	switch {
	case s.Queue > 0:
		return s.Queue
	case s.Overlap == OverlapQueue:
		return DefaultQueue
	}
	return defaultWaits
}

// Orders reports whether a due time of the job must wait for earlier due times that have not begun.
func (s *Spec) Orders() bool {
	return s.Overlap == OverlapQueue || s.Overlap == OverlapReplace || s.Group != "" || s.Misfire.Policy == MisfireAll
}

// Awaited reports whether other runs may be waiting for the end of a run of this kind.
func (s *Spec) Awaited(kind RunKind) bool {
	return kind != FromSchedule || s.Delay != 0 || s.Retry.Attempts > 1 || s.OnLost == LostRerun || s.Orders()
}

func (s *Spec) overlapDefaults() {
	if s.Overlap == "" {
		s.Overlap = OverlapSkip
	}
	if s.Queue == 0 && s.Overlap == OverlapQueue {
		s.Queue = DefaultQueue
	}
}

func (s *Spec) validateOverlap(p *Problems) {
	switch s.Overlap {
	case OverlapSkip, OverlapQueue, OverlapReplace, OverlapAllow:
	default:
		p.Add("overlap", problem.NotOneOf, s.Overlap, "skip, queue, replace, allow")
	}

	switch {
	case s.Queue < 0 || s.Queue > MaxQueue:
		p.Add("queue", problem.NotBetween, s.Queue, 1, MaxQueue)
	case s.Queue > 0 && s.Overlap != OverlapQueue && s.Group == "":
		p.Add("queue", problem.QueueUnused, s.Overlap)
	}

	if s.Group != "" {
		checkName(p, "group", s.Group)
	}

	if s.Priority < -MaxPriority || s.Priority > MaxPriority {
		p.Add("priority", problem.NotBetween, s.Priority, -MaxPriority, MaxPriority)
	}

	if d := time.Duration(s.StartDeadline); d != 0 && (d < MinStartDeadline || d > MaxStartDeadline) {
		p.Add("start_deadline", problem.NotBetween.Advise("leave it out for no limit"), s.StartDeadline,
			Duration(MinStartDeadline), Duration(MaxStartDeadline))
	}
}
