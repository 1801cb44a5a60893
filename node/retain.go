package node

import (
	"go-crontab/result"
	"go-crontab/schedule"
	"go-crontab/session"
)

// newRetainer makes what removes records that are kept no longer.
func (n *Node) newRetainer(s *session.Session, l *schedule.Lookout) *result.Retainer {
	r := &result.Retainer{DB: n.api, Session: s, Behind: func() bool { return l.Behind(s.Now()) }, Log: n.log}
	if n.cfg.Archive != "" {
		r.Archive = result.ArchiveCommand(n.cfg.Archive, n.cfg.ArchiveTimeout)
	}
	return r
}

// newTrimmer makes what removes output of apps that are over their limit.
func (n *Node) newTrimmer(s *session.Session, l *schedule.Lookout) *result.Trimmer {
	return &result.Trimmer{DB: n.api, Session: s, NoLimits: l.NoLimits, Behind: func() bool { return l.Behind(s.Now()) }, Log: n.log}
}
