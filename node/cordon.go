package node

import (
	"context"
	"maps"
	"runtime"
	"time"

	"go-crontab/job"
	"go-crontab/session"
)

// taker is a session as those see it who take work: while its node is cordoned, or has no guard,
// nothing may be claimed or started.
type taker struct {
	*session.Session
	guarded func() bool
}

// Fresh tells whether anything may be claimed or started now.
func (t taker) Fresh() bool { return t.Session.Fresh() && !t.Cordoned() && t.guarded() }

// quietLimit is how long giving back may take before it is tried again at the next look.
const quietLimit = time.Second

// obeyCordon gives back what is prepared, and says so once nothing is any more. It is called again
// and again while the node is cordoned. Nothing is claimed or started that begins now, and GiveBack
// waits for what is under way.
func (l *life) obeyCordon() {
	if l.session.ObeysCordon() && l.prepared.Len() == 0 {
		return
	}

	bounded, cancel := context.WithTimeout(l.session.Context(), quietLimit)
	defer cancel()
	if err := l.starter.GiveBack(bounded); err != nil {
		l.n.log.Warn("cannot give back what is prepared, trying again", "error", err)
		return
	}

	l.session.ObeyCordon()
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
