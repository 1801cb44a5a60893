package node

import (
	"context"
	"maps"
	"runtime"
	"time"

	"go-crontab/job"
	"go-crontab/session"
)

// taker is a session as those see it who take work: while its node is cordoned, or has no guard, nothing may be claimed or
// started.
type taker struct {
	*session.Session
	guarded func() bool
}

// Fresh tells whether anything may be claimed or started now.
func (t taker) Fresh() bool { return t.Session.Fresh() && !t.Cordoned() && t.guarded() }

// quietLimit is how long the end of changes under way is waited for before it is tried again at the next look.
const quietLimit = 250 * time.Millisecond

// obeyCordon gives back what is prepared, and says so once nothing is any more. It is called again and again while the
// node is cordoned: a start may be under way, whose tasks stay, or a claim. No claim takes anything that begins now, and
// those that have begun are waited for.
func (l *life) obeyCordon() {
	if l.giveUp() > 0 || l.session.ObeysCordon() {
		return
	}
	bounded, cancel := context.WithTimeout(l.session.Context(), quietLimit)
	defer cancel()
	if l.n.exclusion.Quiet(bounded) == nil && l.giveUp() == 0 {
		l.session.ObeyCordon()
	}
}

// giveUp gives back what is prepared, and returns how much of it is in the middle of a start.
func (l *life) giveUp() (left int) {
	gone, left := l.prepared.GiveUp()
	if gone > 0 {
		l.compensator.Wake()
	}
	return left
}

// labels are what selectors of jobs see of the node, without its handlers.
func (n *Node) labels() map[string]string {
	labels := map[string]string{job.LabelNode: n.cfg.Name, job.LabelOS: runtime.GOOS, job.LabelArch: runtime.GOARCH}
	if n.cfg.HandlersOnly {
		labels[job.LabelOnly] = "handlers"
	}
	maps.Copy(labels, n.cfg.Labels)
	return labels
}
