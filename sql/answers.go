package sql

import (
	"context"
	stdsql "database/sql"
)

// Answer is what a request that carries an Idempotency-Key was answered, so that the same again gets the same.
type Answer struct {
	Kind   string
	Digest [32]byte // of the request
	JobID  int64    // the job that it made or changed, if it was one
	Status int      // zero: it was not answered yet, or whoever was to answer it died
	Header string   // as JSON
	Body   []byte
}

// AnswerTo returns the answer to the request that carried a key, or ErrNotFound.
func (db *DB) AnswerTo(ctx context.Context, key string) (Answer, error) {
	var (
		a     Answer
		found bool
	)
	err := db.query(ctx, "read answer", func(rows *stdsql.Rows) error {
		var digest []byte
		found = true
		err := rows.Scan(&a.Kind, &digest, &a.JobID, &a.Status, &a.Header, &a.Body)
		copy(a.Digest[:], digest)
		return err
	}, "SELECT kind, digest, job_id, status, header, answer FROM request WHERE idem_key = ?", []byte(key))
	if err == nil && !found {
		err = ErrNotFound
	}
	return a, err
}

// KeepAnswer writes down the answer to the request that carried a key.
func (db *DB) KeepAnswer(ctx context.Context, key string, a Answer) error {
	return db.Tx(ctx, func(tx *Tx) error {
		_, err := tx.exec("keep answer", "UPDATE request SET status = ?, header = ?, answer = ? WHERE idem_key = ? AND digest = ?",
			a.Status, a.Header, a.Body, []byte(key), a.Digest[:])
		return err
	})
}
