package edit

import (
	"context"

	"go-crontab/job"
	"go-crontab/sql"
)

// record makes a change of something other than a job, together with its audit line. A nil line
// means that nothing was changed.
func (e *Editor) record(ctx context.Context, change func(*sql.Tx, job.Micros) (*job.Entry, error)) error {
	now := e.Session.Now()
	err := e.DB.Record(ctx, func(tx *sql.Tx) (*job.Entry, error) {
		line, err := change(tx, now)
		if line != nil && line.At == 0 {
			line.At = now
		}
		return line, err
	})
	return e.refused(err)
}
