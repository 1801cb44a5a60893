package sql

import (
	"context"
	stdsql "database/sql"
	"errors"

	"go-crontab/job"
)

// Answer is what a request that carries an Idempotency-Key was answered, so that the same again gets the same.
type Answer struct {
	Kind           string
	Digest         [32]byte // of the request
	JobID          int64    // the job that it made or changed, if it was one
	job.KeptAnswer          // its status is zero if it was not answered yet, or if whoever was to answer it died
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

// KeepAnswer writes down the answer to a request that carried a key, unless one stands. It writes down the key as well if
// no change did, because there was nothing to change.
func (db *DB) KeepAnswer(ctx context.Context, o *job.Once, a job.KeptAnswer) error {
	return db.Tx(ctx, func(tx *Tx) error {
		_, err := tx.Exec("keep answer", "INSERT INTO request (kind, idem_key, job_id, digest, created, status, header, answer) VALUES (?, ?, ?, ?, "+Clock+", ?, ?, ?)"+
			" ON DUPLICATE KEY UPDATE header = IF(status = 0 AND digest = VALUES(digest), VALUES(header), header),"+
			" answer = IF(status = 0 AND digest = VALUES(digest), VALUES(answer), answer),"+
			" status = IF(status = 0 AND digest = VALUES(digest), VALUES(status), status)", // the others look at what it was
			o.Kind, []byte(o.Key), o.JobID, o.Digest[:], a.Status, a.Header, a.Body)
		return err
	})
}

// errKeyTaken means that somebody has written down the same key meanwhile.
var errKeyTaken = errors.New("the key was written down meanwhile")

// TxOnce is TxSettled for what a request changes. In a context with a request that is to be carried out once, the
// transaction writes down its key as well. If it stands already, nothing is changed: job.ErrRepeated, or job.ErrKeyReused
// when it is that of another request. Whether the key stands tells then whether the change does.
func (db *DB) TxOnce(ctx context.Context, fn func(*Tx) error, settled func(*Tx) (bool, error)) error {
	once := job.OnceOf(ctx)
	if once == nil {
		return db.TxSettled(ctx, fn, settled)
	}
	for {
		err := db.TxSettled(ctx, func(tx *Tx) error {
			switch there, err := tx.keyStands(once); {
			case err != nil:
				return err
			case there:
				return job.ErrRepeated
			}
			once.JobID = 0
			if err := fn(tx); err != nil {
				return err
			}
			return tx.writeKey(once)
		}, func(tx *Tx) (bool, error) { return tx.keyStands(once) })
		if errors.Is(err, errKeyTaken) {
			continue // of two with one key who came second is told so
		}
		once.Done = err == nil
		return err
	}
}

// keyStands tells whether a request's key is written down, waiting for whoever is about to.
func (tx *Tx) keyStands(once *job.Once) (bool, error) {
	r, err := tx.LockRequest(once.Key)
	switch {
	case errors.Is(err, ErrNotFound):
		return false, nil
	case err == nil && r.Digest != once.Digest:
		return false, job.ErrKeyReused
	}
	return err == nil, err
}

func (tx *Tx) writeKey(once *job.Once) error {
	at, err := tx.Now()
	if err != nil {
		return err
	}
	id, err := tx.InsertRequest(once.Kind, once.Key, once.Digest, once.JobID, at)
	switch {
	case errors.Is(err, ErrExists):
		return errKeyTaken
	case err != nil || once.Answer == nil:
		return err
	}
	a := once.Answer()
	_, err = tx.Exec("keep answer", "UPDATE request SET status = ?, header = ?, answer = ? WHERE id = ?", a.Status, a.Header, a.Body, id)
	return err
}
