package sql

import (
	"context"
	stdsql "database/sql"
	"errors"
	"fmt"

	"go-crontab/job"
)

// errKeyTaken means that a concurrent request has stored the same key.
var errKeyTaken = errors.New("another request with this key was recorded meanwhile")

// TxOnce is like TxSettled, for a change that a request makes. If ctx carries a request that must
// take effect only once, the transaction also stores the key of the request. If the key exists
// already, nothing changes. The error is then job.ErrRepeated, or job.ErrKeyReused if the key
// belongs to a different request. An unknown commit is settled by looking for the key.
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
			// Another request with this key has just stored it. The next round finds the stored
			// key.
			continue
		}

		once.Done = err == nil
		return err
	}
}

// keyStands reports whether a request's key is stored. It waits for a transaction that is storing
// the key.
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
	_, err = tx.Exec("keep answer", `
		UPDATE request
		SET status = ?, header = ?, answer = ?
		WHERE id = ?`, a.Status, a.Header, a.Body, id)

	return err
}

// InsertRequest records a request for runs of a job. The runs name the request's id as their
// origin. key is the client's Idempotency-Key, or "". If the key was used before, the error is
// ErrExists.
func (tx *Tx) InsertRequest(kind, key string, digest [32]byte, jobID int64, now job.Micros) (int64, error) {
	var k any
	if key != "" {
		k = []byte(key)
	}

	id, err := tx.Insert("insert request", `
		INSERT INTO request (kind, idem_key, job_id, digest, created)
		VALUES (?, ?, ?, ?, ?)`, kind, k, jobID, digest[:], int64(now))
	if IsDuplicate(err) {
		return 0, fmt.Errorf("idempotency key %q: %w", key, ErrExists)
	}
	return id, err
}

// Request is a recorded request for runs of a job.
type Request struct {
	ID, JobID int64
	Digest    [32]byte
	Created   job.Micros
}

// LockRequest locks and returns the request with a key, or ErrNotFound.
func (tx *Tx) LockRequest(key string) (Request, error) {
	var out []Request
	err := tx.query("read request", func(rows *stdsql.Rows) error {
		var (
			r      Request
			digest []byte
		)
		err := rows.Scan(&r.ID, &r.JobID, &digest, &r.Created)
		copy(r.Digest[:], digest)
		out = append(out, r)
		return err
	}, "SELECT id, job_id, digest, created FROM request WHERE idem_key = ? FOR UPDATE", []byte(key))

	return First(out, err)
}
