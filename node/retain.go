package node

import (
	"go-crontab/result"
	"go-crontab/session"
)

// newRetainer makes what removes records that are kept no longer.
func (n *Node) newRetainer(s *session.Session, behind func() bool) *result.Retainer {
	r := &result.Retainer{DB: n.reads(), Session: s, Behind: behind, Log: n.log}
	if n.cfg.Archive != "" {
		r.Archive = result.ArchiveCommand(n.cfg.Archive, n.cfg.ArchiveTimeout)
	}
	return r
}

// newTrimmer makes what removes output of apps that are over their limit.
func (n *Node) newTrimmer(s *session.Session, noLimits, behind func() bool) *result.Trimmer {
	return &result.Trimmer{DB: n.reads(), Session: s, NoLimits: noLimits, Behind: behind, Log: n.log}
}

// newTidier makes what removes all else that is kept no longer.
func (n *Node) newTidier(s *session.Session, behind func() bool) *result.Tidier {
	return &result.Tidier{DB: n.reads(), Session: s, Behind: behind, Audit: n.cfg.AuditKept, Log: n.log}
}
