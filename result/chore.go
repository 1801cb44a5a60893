package result

import (
	"context"
	"time"

	"go-crontab/job"
	"go-crontab/sql"

	"github.com/google/uuid"
)

// Names of chores.
const (
	choreRetention = "retention" // removes records
	choreOutput    = "output"    // removes output of apps over their limit
)

// takeChore gives a chore to a session for some time, unless another session has it. It reports
// whether the session got the chore, and the position at which the last holder stopped. A row that
// says that the chore is held for longer than is possible was changed outside the program.
// takeChore ignores such a hold.
func takeChore(
	ctx context.Context, db *sql.DB, name string, session uuid.UUID, hold time.Duration,
) (mine bool, at int64, err error) {
	err = db.Tx(ctx, func(tx *sql.Tx) error {
		n, err := tx.Exec("take chore", `
			UPDATE chore FORCE INDEX (PRIMARY)
			SET session_id = ?, until = `+sql.Clock+` + ?
			WHERE name = ?
				AND (session_id = ? OR session_id IS NULL OR until < `+sql.Clock+` OR until > `+sql.Clock+` + ?)`,
			session[:], hold.Microseconds(), name, session[:], 2*hold.Microseconds())
		if mine = n == 1; err != nil || !mine {
			return err
		}
		scan := func(rows *sql.Rows) error { return rows.Scan(&at) }
		return sql.Each(tx, "read chore", scan, "SELECT at_id FROM chore WHERE name = ?", name)
	})

	return mine && err == nil, at, err
}

// choreDone is the work of a session since its last report, and its position.
type choreDone struct {
	At                int64 // id of the last job that is done
	Ended             job.Micros
	Removed, Archived int64
	Failures          int64 // since the last round without a failure
	Error             string
	ErrorAt           job.Micros
}

// tellChore writes a session's choreDone to the row of the chore.
func tellChore(ctx context.Context, db *sql.DB, session uuid.UUID, d choreDone) error {
	return db.Tx(ctx, func(tx *sql.Tx) error {
		_, err := tx.Exec("record the work of a chore", `
			UPDATE chore FORCE INDEX (PRIMARY)
			SET at_id = ?, ended = GREATEST(ended, ?), `+sql.Added("removed")+`, `+sql.Added("archived")+`,
				failures = ?, error = IF(? = '', error, ?), error_at = GREATEST(error_at, ?)
			WHERE name = 'retention' AND session_id = ?`,
			d.At, int64(d.Ended), d.Removed, d.Archived, d.Failures,
			sql.Cut(d.Error, 512), sql.Cut(d.Error, 512), int64(d.ErrorAt), session[:])
		return err
	})
}
