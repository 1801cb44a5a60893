package node

import (
	"context"
	"maps"
	"runtime"
	"time"

	"go-crontab/job"
	"go-crontab/session"
)

// taker is the session as seen by the stages that take work. While its node is cordoned or has no
// guard, nothing may be claimed or started.
type taker struct {
	*session.Session
	guarded func() bool
}

// Fresh reports whether anything may be claimed or started now.
func (t taker) Fresh() bool { return t.Session.Fresh() && !t.Cordoned() && t.guarded() }

// giveBackLimit bounds one attempt to release the prepared runs; the next look retries.
const giveBackLimit = time.Second

// obeyCordon releases the prepared runs, and publishes that once none is left. It is called at each
// look while the node is cordoned. No claim or start begins any more, and GiveBack waits for
// running ones.
func (l *life) obeyCordon() {
	if l.session.ObeysCordon() && l.prepared.Len() == 0 {
		return
	}

	bounded, cancel := context.WithTimeout(l.session.Context(), giveBackLimit)
	defer cancel()
	if err := l.starter.GiveBack(bounded); err != nil {
		l.n.log.Warn("cannot release prepared runs, trying again", "error", err)
		return
	}

	l.session.ObeyCordon()
}

// labels are the labels of the node for the selectors of jobs, without its handlers.
func (n *Node) labels() map[string]string {
	labels := map[string]string{job.LabelNode: n.cfg.Name, job.LabelOS: runtime.GOOS, job.LabelArch: runtime.GOARCH}
	if n.cfg.HandlersOnly {
		labels[job.LabelOnly] = "handlers"
	}
	maps.Copy(labels, n.cfg.Labels)
	return labels
}
