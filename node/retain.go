package node

import (
	"go-crontab/result"
	"go-crontab/session"
)

// newRetainer makes the remover of old records.
func (n *Node) newRetainer(s *session.Session, behind func() bool) *result.Retainer {
	r := &result.Retainer{DB: n.reads(), Session: s, Behind: behind, Log: n.log}
	if n.cfg.Archive != "" {
		r.Archive = result.ArchiveCommand(n.cfg.Archive, n.cfg.ArchiveTimeout)
	}
	return r
}

// newTrimmer makes the remover of output of apps over their limit.
func (n *Node) newTrimmer(s *session.Session, noLimits, behind func() bool) *result.Trimmer {
	return &result.Trimmer{DB: n.reads(), Session: s, NoLimits: noLimits, Behind: behind, Log: n.log}
}

// newTidier makes the remover of everything beyond records and output that has a retention.
func (n *Node) newTidier(s *session.Session, behind func() bool) *result.Tidier {
	return &result.Tidier{DB: n.reads(), Session: s, Behind: behind, Audit: n.cfg.AuditKept, Log: n.log}
}
