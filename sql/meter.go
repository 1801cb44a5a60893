package sql

import (
	"sync/atomic"
	"time"

	"go-crontab/job"
)

// Meter counts what one pool asks of MySQL and what became of it. What a transaction did is counted
// once its commit is known: what a commit did whose reply was lost is in no count, but that it was
// lost is.
type Meter struct {
	// all that were sent in transactions and for lists; a beat and its reading of the clock are one
	// each
	Statements atomic.Int64
	Errors     atomic.Int64 // those of them that failed

	Applied atomic.Int64 // transactions whose commit is known
	Refused atomic.Int64 // of which nothing stands
	Unknown atomic.Int64 // of which nobody knows, until it is settled
	Retries atomic.Int64 // transactions begun again after a deadlock or a lock wait that was too long

	Claimed atomic.Int64 // runs that became prepared
	Started atomic.Int64 // runs that became executing
	Freed   atomic.Int64 // runs that became idle again out of turn

	ended [job.LastOutcome + 1]atomic.Int64
}

// Ended is how many runs have ended with an outcome.
func (m *Meter) Ended(o job.Outcome) int64 { return m.ended[o].Load() }

// sent counts one statement and hands its error through.
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

// tally is what one transaction did, to be counted if it is applied.
type tally struct {
	claimed, started, freed int64
	ended                   [job.LastOutcome + 1]int64
	any                     bool
}

// Claimed, Started, Freed and Ended say what the transaction did to runs. It counts once the
// transaction is applied.

// Claimed says that runs became prepared.
func (tx *Tx) Claimed(n int64) { tx.did.claimed, tx.did.any = tx.did.claimed+n, true }

// Started says that runs became executing.
func (tx *Tx) Started(n int64) { tx.did.started, tx.did.any = tx.did.started+n, true }

// Freed says that runs became idle again out of turn.
func (tx *Tx) Freed(n int64) { tx.did.freed, tx.did.any = tx.did.freed+n, true }

// Ended says that runs have ended with an outcome.
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

// Pool is how the connections of a pool are used.
type Pool struct {
	Most, InUse, Idle int
	Waits             int64         // how often somebody waited for one
	Waited            time.Duration // for how long, all together
}

// Pool tells how the connections are used now.
func (db *DB) Pool() Pool {
	s := db.db.Stats()
	return Pool{Most: s.MaxOpenConnections, InUse: s.InUse, Idle: s.Idle, Waits: s.WaitCount, Waited: s.WaitDuration}
}
