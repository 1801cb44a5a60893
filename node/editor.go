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
	return &edit.Editor{
		DB:        n.api,
		Session:   l.session,
		StopsSeen: schedule.StopsSeen(job.SpawnWindow * time.Microsecond),
		Limited:   n.metrics.Limited,
		Unsettled: l.session.Unsettled,
		Soon:      func() { l.claimer.Look(); l.starter.Woken(); l.wishes.Look() },
	}
}
