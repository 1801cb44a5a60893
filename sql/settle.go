package sql

import (
	"context"
	"time"
)

// settleEvery is between looks at whether a transaction whose commit is unknown stands.
const settleEvery = 100 * time.Millisecond

// TxSettled runs fn in transactions until one is known to be applied or refused; settled tells, by
// locking reads, whether one whose commit is unknown was applied. It is *Unknown only if MySQL
// could not be asked until ctx ended.
//
// Where several servers take writes, a commit may still arrive after settled did not see it. So
// either settled writes what fn has written, and whichever comes second is refused, or fn does so
// when it runs again.
func (db *DB) TxSettled(ctx context.Context, fn func(*Tx) error, settled func(*Tx) (bool, error)) error {
	for {
		err := db.Tx(ctx, fn)
		if !IsUnknown(err) {
			return err
		}

		unknown := err
		for {
			var applied bool
			err := db.Tx(ctx, func(tx *Tx) (err error) { applied, err = settled(tx); return err })
			if applied && (err == nil || IsUnknown(err)) { // what was read stands either way
				return nil
			}
			if err == nil {
				break // nothing of it stands: once more
			}

			select {
			case <-ctx.Done():
				return unknown
			case <-time.After(settleEvery):
			}
		}
	}
}
