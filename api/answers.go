package api

import (
	"context"

	"go-crontab/job"
	"go-crontab/sql"
)

// storedAnswer is the stored answer to a request with an Idempotency-Key. A repeated request gets
// the same answer.
type storedAnswer struct {
	Kind           string
	Digest         [32]byte // of the request
	JobID          int64    // the job that the request made or changed; 0: none
	job.KeptAnswer          // status 0: not answered yet, or the node died before it could answer
}

// answerTo returns the answer to the request that carried a key, or sql.ErrNotFound.
func answerTo(r sql.Reader, key string) (storedAnswer, error) {
	scan := func(rows *sql.Rows) (a storedAnswer, err error) {
		var digest []byte
		err = rows.Scan(&a.Kind, &digest, &a.JobID, &a.Status, &a.Header, &a.Body)
		copy(a.Digest[:], digest)
		return a, err
	}
	return sql.First(sql.Select(r, "read answer", scan, `
		SELECT kind, digest, job_id, status, header, answer
		FROM request
		WHERE idem_key = ?`, []byte(key)))
}

// keepAnswer stores the answer to a request with a key, unless an answer is stored already. A
// change has stored its key itself. If the request changed nothing, keepAnswer stores the key, too.
func keepAnswer(ctx context.Context, db *sql.DB, o *job.Once, a job.KeptAnswer) error {
	// status is set last, because the other columns test its old value.
	const query = `
		INSERT INTO request (kind, idem_key, job_id, digest, created, status, header, answer)
		VALUES (?, ?, ?, ?, ` + sql.Clock + `, ?, ?, ?)
		ON DUPLICATE KEY UPDATE
			header = IF(status = 0 AND digest = VALUES(digest), VALUES(header), header),
			answer = IF(status = 0 AND digest = VALUES(digest), VALUES(answer), answer),
			status = IF(status = 0 AND digest = VALUES(digest), VALUES(status), status)`

	return db.Tx(ctx, func(tx *sql.Tx) error {
		_, err := tx.Exec("keep answer", query,
			o.Kind, []byte(o.Key), o.JobID, o.Digest[:], a.Status, a.Header, a.Body)
		return err
	})
}
