package node

import (
	"maps"
	"runtime"

	"go-crontab/job"
	"go-crontab/session"
)

// taker is a session as those see it who take work: while its node is cordoned nothing may be claimed or started.
type taker struct{ *session.Session }

// Fresh tells whether anything may be claimed or started now.
func (t taker) Fresh() bool { return t.Session.Fresh() && !t.Cordoned() }

// obeyCordon gives back what is prepared. It is called again and again while the node is cordoned: a claim or a start
// may have been under way.
func (l *life) obeyCordon() {
	gone, left := l.prepared.GiveUp()
	if gone > 0 {
		l.compensator.Wake()
	}
	if left == 0 {
		l.session.ObeyCordon()
	}
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
