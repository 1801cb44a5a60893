package read

import (
	"go-crontab/job"
	"go-crontab/sql"

	"github.com/google/uuid"
)

// Chore is the state of a task that one node does for all nodes.
type Chore struct {
	Session  uuid.UUID // the session that has the chore; uuid.Nil: none
	Until    job.Micros
	At       int64 // the position of its progress
	Ended    job.Micros
	Removed  int64
	Archived int64
	Failures int64
	Error    string
	ErrorAt  job.Micros
}

// Retaining returns the state of the chore that removes old records.
func Retaining(r sql.Reader) (c Chore, err error) {
	err = sql.Each(r, "read chore", func(rows *sql.Rows) error {
		var session []byte
		err := rows.Scan(&session, &c.Until, &c.At, &c.Ended, &c.Removed, &c.Archived, &c.Failures, &c.Error,
			&c.ErrorAt)
		c.Session, _ = uuid.FromBytes(session)
		return err
	}, `
		SELECT session_id, until, at_id, ended, removed, archived, failures, error, error_at
		FROM chore
		WHERE name = 'retention'`)

	return c, err
}
