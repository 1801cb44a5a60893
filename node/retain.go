package node

import (
	"context"

	"go-crontab/job"
	"go-crontab/result"
	"go-crontab/schedule/edit"
	"go-crontab/sql/read"
)

// newRetainer makes the remover of old records.
func (l *life) newRetainer(lookout result.Lookout) *result.Retainer {
	n := l.n
	cfg := result.RetainerConfig{DB: read.Retention{DB: n.reads()}, Session: l.session, Lookout: lookout, Names: l.defs.Name, Log: n.log,
		Jobs: finished{l.editor, n.cfg.Name}}
	if n.cfg.Archive != "" {
		cfg.Archive = result.ArchiveCommand(n.cfg.Archive, n.cfg.ArchiveTimeout)
	}
	return result.NewRetainer(cfg)
}

// finished deletes finished jobs in the name of a node.
type finished struct {
	editor *edit.Editor
	node   string
}

func (f finished) DeleteFinished(ctx context.Context, jobs []job.FinishedJob) (int, error) {
	return f.editor.DeleteFinished(job.WithActor(ctx, job.Actor{Who: job.Itself, Origin: f.node}), jobs)
}

// newTrimmer makes the part that removes output of apps over their limit.
func (l *life) newTrimmer(lookout result.Lookout) *result.Trimmer {
	return result.NewTrimmer(result.TrimmerConfig{
		DB:      l.n.reads(),
		Session: l.session,
		Lookout: lookout,
		Log:     l.n.log,
	})
}

// newTidier makes the part that removes other expired rows, such as audit lines.
func (l *life) newTidier(lookout result.Lookout) *result.Tidier {
	return result.NewTidier(result.TidierConfig{
		DB:      l.n.reads(),
		Session: l.session,
		Lookout: lookout,
		Audit:   l.n.cfg.AuditKept,
		Log:     l.n.log,
	})
}
