package sql

import (
	"context"
	"time"
)

// settleEvery is the pause between attempts to settle an unknown commit.
const settleEvery = 100 * time.Millisecond

// TxSettled runs fn in transactions until one is known to be applied or refused. After an unknown
// commit, it calls settled, which finds out by locking reads whether the transaction was applied.
// TxSettled returns *Unknown only if MySQL could not be asked before ctx ended.
//
// On a multi-writer cluster, the lost commit may still arrive after settled has not found it. So
// settled, or fn when it runs again, must write the same rows as the lost transaction. Then the
// cluster refuses the later of the two.
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
			// settled has its answer, even if the end of its own transaction is unknown.
			if applied && (err == nil || IsUnknown(err)) {
				return nil
			}
			if err == nil {
				break // nothing was written: try again
			}

			select {
			case <-ctx.Done():
				return unknown
			case <-time.After(settleEvery):
			}
		}
	}
}
