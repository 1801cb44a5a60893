package node

import (
	"context"
	"log/slog"
	"maps"
	"runtime"
	"time"

	"go-crontab/execute"
	"go-crontab/job"
	"go-crontab/schedule"
	"go-crontab/session"
)

// taker is the session as the stages see it that take work. While its node is cordoned or has no
// guard, nothing may be claimed or started.
type taker struct {
	*session.Session
	guard execute.Guard
}

// Fresh reports whether anything may be claimed or started now.
func (t taker) Fresh() bool { return t.Session.Fresh() && !t.Cordoned() && t.guard.Alive() }

// giveBackLimit bounds one attempt to release the prepared runs; the next look retries.
const giveBackLimit = time.Second

// cordon carries out the cordon of the node: it releases what the node has prepared.
type cordon struct {
	session  *session.Session
	prepared *schedule.Prepared
	starter  *schedule.Starter
	log      *slog.Logger
}

// Obey releases the prepared runs. When none is left, it publishes that the node obeys. It is
// called at each look while the node is cordoned. By then no claim or start begins, and GiveBack
// waits for claims and starts in progress.
func (c cordon) Obey() {
	if c.session.ObeysCordon() && c.prepared.Len() == 0 {
		return
	}

	bounded, cancel := context.WithTimeout(c.session.Context(), giveBackLimit)
	defer cancel()
	if err := c.starter.GiveBack(bounded); err != nil {
		c.log.Warn("cannot release prepared runs, trying again", "error", err)
		return
	}

	c.session.ObeyCordon()
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
