package node

import (
	"go-crontab/job"
	"go-crontab/schedule"
	"go-crontab/schedule/edit"
	"time"
)

// newEditor makes the editor of jobs. It uses the pool for people, so that a flood of changes
// cannot starve starts.
func (n *Node) newEditor(l *life) *edit.Editor {
	return edit.New(edit.Config{
		DB:          n.api,
		Session:     l.session,
		Metrics:     n.metrics,
		StopsSeen:   schedule.StopsSeen(job.SpawnWindow * time.Microsecond),
		WakeClaimer: l.wake.claimer,
		WakeOverdue: l.wake.overdue,
		WakeWishes:  l.wake.wishes,
	})
}
