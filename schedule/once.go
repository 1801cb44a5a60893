package schedule

import (
	"context"
	"errors"

	"go-crontab/job"
	"go-crontab/sql"
)

// errKeyTaken means that somebody has written down the same key meanwhile.
var errKeyTaken = errors.New("the key was written down meanwhile")

// change runs fn in a transaction until it is known to be applied or refused; settled tells, by locking reads,
// whether one whose commit is unknown was applied.
//
// In a context with a request that is to be carried out once, the transaction writes down its key as well. If it stands
// already, nothing is changed: job.ErrRepeated, or job.ErrKeyReused when it is that of another request. Whether the key
// stands tells then whether the change does.
func (e *Editor) change(ctx context.Context, fn func(*sql.Tx) error, settled func(*sql.Tx) (bool, error)) error {
	once := job.OnceOf(ctx)
	if once == nil {
		return e.DB.TxSettled(ctx, fn, settled)
	}
	for {
		err := e.DB.TxSettled(ctx, func(tx *sql.Tx) error {
			switch there, err := keyStands(tx, once); {
			case err != nil:
				return err
			case there:
				return job.ErrRepeated
			}
			once.JobID = 0
			if err := fn(tx); err != nil {
				return err
			}
			_, err := tx.InsertRequest(once.Kind, once.Key, once.Digest, once.JobID, e.Session.Now())
			if errors.Is(err, sql.ErrExists) {
				return errKeyTaken // of two with one key who came second is told so
			}
			return err
		}, func(tx *sql.Tx) (bool, error) { return keyStands(tx, once) })
		if errors.Is(err, errKeyTaken) {
			continue
		}
		once.Done = err == nil
		return err
	}
}

// keyStands tells whether a request's key is written down, waiting for whoever is about to.
func keyStands(tx *sql.Tx, once *job.Once) (bool, error) {
	r, err := tx.LockRequest(once.Key)
	switch {
	case errors.Is(err, sql.ErrNotFound):
		return false, nil
	case err == nil && r.Digest != once.Digest:
		return false, job.ErrKeyReused
	}
	return err == nil, err
}
