package trip

import (
	"encoding/binary"
	"errors"
	"slices"

	"go-crontab/job"
	"go-crontab/sql"
)

// People and alerts follow the ends of runs. No index of `run` is in the order of ends, and ids of
// runs are not in time order. So each transaction that ends runs adds one row to `ending`. The row
// lists the runs, in a few bytes each. A follower reads the rows after the last id that it has
// seen. A slow transaction may commit after another with a higher id. So followers also look back
// for gaps, as far as the longest time that a transaction may take (internal/trail).
//
// Measured (BenchmarkFinish of sql/read, 800 ends in each transaction): the cost of the row is
// lost in the noise. An index of ends on `run` would cost an entry for each run.
//
// The id of a row numbers a transaction, not a run, and has no meaning for the trip. In a sharded
// database each shard has its own ids, as it has its own runs.

// Note is the end of one run.
type Note struct {
	Run     int64
	JobID   int64
	Outcome job.Outcome
}

// noteEnds records the ends of a transaction: all runs for followers, and unsuccessful runs for
// lists. changed is the number of rows that the transaction changed. If that number is lower than
// expected, another node has ended and noted the other runs.
func noteEnds(tx *sql.Tx, notes []Note, changed int64) error {
	if len(notes) == 0 || changed == 0 {
		return nil
	}
	if changed != int64(len(notes)) {
		ended, err := endsOf(tx, notes)
		if err != nil {
			return err
		}
		notes = slices.DeleteFunc(notes, func(n Note) bool { return ended[n.Run].Outcome != n.Outcome })
		if len(notes) == 0 {
			return nil
		}
	}

	for _, n := range notes {
		tx.Ended(n.Outcome, 1)
	}

	const query = `
		INSERT INTO ending (at, runs)
		VALUES (CAST(UNIX_TIMESTAMP(NOW(6)) * 1000000 AS SIGNED), ?)`
	if _, err := tx.Exec("record ends of runs", query, encodeNotes(notes)); err != nil {
		return err
	}

	return noteFailures(tx, notes)
}

// noteRefused is like noteEnds, for runs that were never started. It reads the jobs of the runs
// from the rows of the runs.
func noteRefused(tx *sql.Tx, refusals []Refusal, changed int64) error {
	if changed == 0 {
		return nil
	}

	notes := make([]Note, len(refusals))
	for i := range refusals {
		notes[i] = Note{Run: refusals[i].Run, Outcome: refusals[i].Outcome}
	}

	ended, err := endsOf(tx, notes)
	if err != nil {
		return err
	}

	var own []Note
	for _, n := range notes {
		if e, ok := ended[n.Run]; ok && e.Outcome == n.Outcome {
			own = append(own, e)
		}
	}

	return noteEnds(tx, own, int64(len(own)))
}

// endsOf reads the outcomes of the runs that have ended.
func endsOf(tx *sql.Tx, notes []Note) (map[int64]Note, error) {
	query := `
		SELECT id, job_id, outcome
		FROM run FORCE INDEX (PRIMARY)
		WHERE state = 'ended' AND id IN ` + each(notes, func(n *Note) int64 { return n.Run })

	scan := func(rows *sql.Rows) (n Note, err error) {
		var outcome string
		if err := rows.Scan(&n.Run, &n.JobID, &outcome); err != nil {
			return n, err
		}
		n.Outcome, err = job.ParseOutcome(outcome)
		return n, err
	}

	found, err := sql.Select(tx, "read ends of runs", scan, query)
	out := make(map[int64]Note, len(found))
	for _, n := range found {
		out[n.Run] = n
	}

	return out, err
}

// noteFailures records unsuccessful runs, for lists.
func noteFailures(tx *sql.Tx, notes []Note) error {
	failed := slices.DeleteFunc(slices.Clone(notes), func(n Note) bool { return n.Outcome == job.Succeeded })
	if len(failed) == 0 {
		return nil
	}
	query := `
		INSERT IGNORE INTO notable (outcome, due, run_id, app_id, job_id)
		SELECT outcome, due, id, app_id, job_id
		FROM run FORCE INDEX (PRIMARY)
		WHERE state = 'ended' AND id IN ` + each(failed, func(n *Note) int64 { return n.Run })
	_, err := tx.Exec("record runs that did not succeed", query)
	return err
}

// encodeNotes writes notes as varints of differences. Ids in a batch are close together, so most
// differences take two bytes.
func encodeNotes(notes []Note) []byte {
	b := make([]byte, 0, 8*len(notes))
	var run, jobID int64
	for _, n := range notes {
		b = binary.AppendVarint(b, n.Run-run)
		b = binary.AppendVarint(b, n.JobID-jobID)
		b = append(b, byte(n.Outcome))
		run, jobID = n.Run, n.JobID
	}
	return b
}

var errNotes = errors.New("a row of the table ending cannot be read")

// DecodeNotes decodes a row of `ending`. Of a damaged row it returns the readable notes, with an
// error.
func DecodeNotes(b []byte) ([]Note, error) {
	var out []Note
	var n Note
	for len(b) > 0 {
		run, size := binary.Varint(b)
		if size <= 0 {
			return out, errNotes
		}
		b = b[size:]
		jobID, size := binary.Varint(b)
		if size <= 0 || size == len(b) {
			return out, errNotes
		}
		n.Run, n.JobID, n.Outcome = n.Run+run, n.JobID+jobID, job.Outcome(b[size])
		b = b[size+1:]
		out = append(out, n)
	}

	return out, nil
}

// DropNotes removes up to limit rows of `ending` from before an instant, the oldest first, with
// ids up to upto. The latest row stays, because followers read the highest id there.
func DropNotes(tx *sql.Tx, before job.Micros, upto int64, limit int) (int64, error) {
	const query = `
		DELETE e
		FROM (
			SELECT id, at
			FROM ending FORCE INDEX (PRIMARY)
			WHERE id <= ? AND id < (SELECT MAX(id) FROM ending)
			ORDER BY id
			LIMIT ?) old
		STRAIGHT_JOIN ending e FORCE INDEX (PRIMARY) ON e.id = old.id
		WHERE old.at < ?`
	return tx.Exec("drop old ends of runs", query, upto, limit, int64(before))
}
