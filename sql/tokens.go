package sql

import (
	stdsql "database/sql"

	"go-crontab/job"
)

// Now is MySQL's clock.
func (tx *Tx) Now() (at job.Micros, err error) {
	err = tx.query("read clock", func(rows *stdsql.Rows) error { return rows.Scan(&at) }, "SELECT "+Clock)
	return at, err
}
