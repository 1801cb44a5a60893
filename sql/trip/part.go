package trip

import (
	"slices"
	"time"

	"go-crontab/job"
	"go-crontab/sql"
)

// A large output has its head and its tail in table output, like every output. The output between
// them is kept in parts, the rows of table output_part. The node writes the parts after the run has
// ended, so they never delay an end. A transaction that adds or removes parts locks the row of
// output, so no part outlives that row.

// PartState says whether the parts of an output can be written.
type PartState int

// The states of an output with parts.
const (
	PartEarly  PartState = iota // the run has not ended yet
	PartWanted                  // its row of output waits for the parts
	PartGone                    // another node has ended the run, or its output was removed
)

// Times of writers of parts.
const (
	// PartPatience is how long an output waits for its run's end to be written, or for MySQL.
	PartPatience = 10 * time.Minute
	// PartGrace is how long a stopping node still writes parts after the end of its session.
	PartGrace = 10 * time.Second
)

// PutPart returns the state of an output, and writes a part of it if the state is PartWanted.
func PutPart(tx *sql.Tx, l Launch, p job.Piece, data []byte, e job.Encoding) (PartState, error) {
	// Look at the run before the row of output. The end of the run adds the row, and its commit
	// may come between the two reads.
	const executing = `
		SELECT id
		FROM run FORCE INDEX (PRIMARY)
		WHERE id = ? AND claim = ? AND state = 'executing'`
	found, err := sql.Select(tx, "look for a run with parts", scanID, executing, l.Run, l.Claim)
	if err != nil || len(found) > 0 {
		return PartEarly, err
	}

	const lock = `
		SELECT parts
		FROM output FORCE INDEX (PRIMARY)
		WHERE run_id = ?
		LOCK IN SHARE MODE`
	found, err = sql.Select(tx, "lock output for a part", scanID, lock, l.Run)
	switch {
	case err != nil:
		return PartEarly, err
	case len(found) == 0 || found[0] == 0:
		return PartGone, nil
	}

	// After an unknown commit the part is written again.
	const query = `
		INSERT INTO output_part (run_id, at_byte, size, line, encoding, data)
		VALUES (?, ?, ?, ?, ?, ?)
		ON DUPLICATE KEY UPDATE size = VALUES(size)`
	_, err = tx.Exec("insert part of output", query, l.Run, p.At, len(p.Data), p.Line, e, data)
	return PartWanted, err
}

// dropPartsBatch bounds the rows that one transaction removes, because replication sends their
// data.
const dropPartsBatch = 16

// DropParts removes some parts of the output of runs, and reports whether there may be more. It
// comes before the transaction that removes the runs or their output, and follows the same rules.
// If we die in between, the outputs have a larger gap until the next round.
func DropParts(tx *sql.Tx, runs []int64) (more bool, err error) {
	query := `
		DELETE FROM output_part
		WHERE run_id IN ` + list(slices.Values(runs)) + `
		ORDER BY run_id, at_byte
		LIMIT ?`
	n, err := tx.Exec("drop parts of old output", query, dropPartsBatch)
	return n == dropPartsBatch, err
}

// DropPartsOver is like DropParts, for an app over its limit of kept output.
func DropPartsOver(tx *sql.Tx, l OutputLimit, runs []KeptOutput) (more bool, err error) {
	more, err = DropParts(tx, idsOfKept(runs))
	if err != nil {
		return false, err
	}
	return more, holdOutputLimit(tx, l)
}

// dropParts removes all parts of outputs whose rows the transaction has locked.
func dropParts(tx *sql.Tx, runs []int64) error {
	for part := range slices.Chunk(runs, 500) {
		query := `
			DELETE p
			FROM output_part p FORCE INDEX (PRIMARY)
			WHERE p.run_id IN ` + list(slices.Values(part))
		if _, err := tx.Exec("drop parts of output", query); err != nil {
			return err
		}
	}
	return nil
}
