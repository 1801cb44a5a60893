package sql

import (
	stdsql "database/sql"
	"fmt"

	"go-crontab/job"
)

// InsertRequest records that somebody asked for runs of a job. Its id is the origin of their tasks. key is the
// client's Idempotency-Key, or "". A key that was used before is ErrExists.
func (tx *Tx) InsertRequest(kind, key string, digest [32]byte, jobID int64, now job.Micros) (int64, error) {
	var k any
	if key != "" {
		k = []byte(key)
	}
	id, err := tx.Insert("insert request", "INSERT INTO request (kind, idem_key, job_id, digest, created) VALUES (?, ?, ?, ?, ?)", kind, k, jobID, digest[:], int64(now))
	if IsDuplicate(err) {
		return 0, fmt.Errorf("idempotency key %q: %w", key, ErrExists)
	}
	return id, err
}

// Request is somebody's wish for runs of a job.
type Request struct {
	ID, JobID int64
	Digest    [32]byte
	Created   job.Micros
}

// LockRequest locks and returns the request that carries a key, or ErrNotFound.
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
