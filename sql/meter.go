package sql

import (
	"sync/atomic"
	"time"

	"go-crontab/job"
)

// Meter counts the statements and transactions of a pool. The effects of a transaction are counted
// once its commit is known. After a lost reply, the transaction counts only as an unknown commit.
type Meter struct {
	// Statements counts all statements of transactions and lists. A beat counts as one, and so does
	// its reading of the clock.
	Statements atomic.Int64
	Errors     atomic.Int64 // statements that failed

	Applied atomic.Int64 // transactions whose commit is known
	Refused atomic.Int64 // transactions that wrote nothing
	Unknown atomic.Int64 // transactions whose reply to COMMIT was lost
	Retries atomic.Int64 // transactions begun again after a deadlock or a lock timeout

	Claimed atomic.Int64 // runs that became prepared
	Started atomic.Int64 // runs that became executing
	Freed   atomic.Int64 // prepared or executing runs that were released: they became idle again

	ended [job.LastOutcome + 1]atomic.Int64
}

// Ended returns the number of runs that have ended with an outcome.
func (m *Meter) Ended(o job.Outcome) int64 { return m.ended[o].Load() }

// sent counts one statement and returns its error.
func (m *Meter) sent(err error) error {
	m.Statements.Add(1)
	if err != nil {
		m.Errors.Add(1)
	}
	return err
}

// outcome counts how a transaction ended.
func (m *Meter) outcome(err error) {
	switch {
	case err == nil:
		m.Applied.Add(1)
	case IsUnknown(err):
		m.Unknown.Add(1)
	default:
		m.Refused.Add(1)
	}
}

// tally holds the effects of a transaction on runs. They are counted only if the transaction is
// applied.
type tally struct {
	claimed, started, freed int64
	ended                   [job.LastOutcome + 1]int64
	any                     bool
}

// Claimed, Started, Freed and Ended note effects of the transaction on runs. The meter counts them
// once the transaction is applied.

// Claimed notes that n runs became prepared.
func (tx *Tx) Claimed(n int64) { tx.did.claimed, tx.did.any = tx.did.claimed+n, true }

// Started notes that n runs became executing.
func (tx *Tx) Started(n int64) { tx.did.started, tx.did.any = tx.did.started+n, true }

// Freed notes that n prepared or executing runs were released: they became idle again.
func (tx *Tx) Freed(n int64) { tx.did.freed, tx.did.any = tx.did.freed+n, true }

// Ended notes that n runs ended with an outcome.
func (tx *Tx) Ended(o job.Outcome, n int64) {
	if o > 0 && o <= job.LastOutcome {
		tx.did.ended[o], tx.did.any = tx.did.ended[o]+n, true
	}
}

func (m *Meter) take(t *tally) {
	if !t.any {
		return
	}

	m.Claimed.Add(t.claimed)
	m.Started.Add(t.started)
	m.Freed.Add(t.freed)
	for o, n := range t.ended {
		if n != 0 {
			m.ended[o].Add(n)
		}
	}
}

// Meter returns the counts of the pool.
func (db *DB) Meter() *Meter { return &db.meter }

// Meter returns the counts of the connection.
func (p *Pulse) Meter() *Meter { return &p.db.meter }

// Pool describes the use of a pool's connections.
type Pool struct {
	Most, InUse, Idle int
	Waits             int64         // requests that had to wait for a connection
	Waited            time.Duration // their waiting time, in total
}

// Pool returns the current use of the connections.
func (db *DB) Pool() Pool {
	s := db.db.Stats()
	return Pool{Most: s.MaxOpenConnections, InUse: s.InUse, Idle: s.Idle, Waits: s.WaitCount, Waited: s.WaitDuration}
}
