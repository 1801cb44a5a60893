package api

import (
	"context"

	"go-crontab/job"
	"go-crontab/sql"
)

// storedAnswer is what a request that carries an Idempotency-Key was answered, so that the same
// again gets the same.
type storedAnswer struct {
	Kind           string
	Digest         [32]byte // of the request
	JobID          int64    // the job that it made or changed, if it was one
	job.KeptAnswer          // its status is zero if it was not answered yet, or if whoever was to answer it died
}

// answerTo returns the answer to the request that carried a key, or sql.ErrNotFound.
func answerTo(r sql.Reader, key string) (storedAnswer, error) {
	scan := func(rows *sql.Rows) (a storedAnswer, err error) {
		var digest []byte
		err = rows.Scan(&a.Kind, &digest, &a.JobID, &a.Status, &a.Header, &a.Body)
		copy(a.Digest[:], digest)
		return a, err
	}
	return sql.First(sql.Select(r, "read answer", scan,
		"SELECT kind, digest, job_id, status, header, answer FROM request WHERE idem_key = ?", []byte(key)))
}

// keepAnswer writes down the answer to a request that carried a key, unless one stands. It writes
// down the key as well if no change did, because there was nothing to change.
func keepAnswer(ctx context.Context, db *sql.DB, o *job.Once, a job.KeptAnswer) error {
	return db.Tx(ctx, func(tx *sql.Tx) error {
		_, err := tx.Exec("keep answer",
			"INSERT INTO request (kind, idem_key, job_id, digest, created, status, header, answer) VALUES (?, ?, ?, ?, "+sql.Clock+", ?, ?, ?)"+
				" ON DUPLICATE KEY UPDATE header = IF(status = 0 AND digest = VALUES(digest), VALUES(header), header),"+
				" answer = IF(status = 0 AND digest = VALUES(digest), VALUES(answer), answer),"+
				// the others look at what it was
				" status = IF(status = 0 AND digest = VALUES(digest), VALUES(status), status)",
			o.Kind, []byte(o.Key), o.JobID, o.Digest[:], a.Status, a.Header, a.Body)
		return err
	})
}
