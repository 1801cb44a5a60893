package trip

import (
	"encoding/binary"
	"errors"
	"slices"

	"go-crontab/job"
	"go-crontab/sql"
)

// People and alerts follow what ends. No index of `run` has the order of ends, and ids of runs have no order in time. So each
// transaction that ends runs adds one row to `ending` that lists them, a few bytes a run. A follower reads the rows after the last
// id that it has seen. A slow transaction may commit after one with a higher id, so followers also look back for gaps, for as long
// as a transaction may take (internal/trail).
//
// Measured (BenchmarkFinish of sql/read, 800 ends a transaction): the row costs less than what two measurements differ by. An index of
// ends on `run` would cost each run an entry.
//
// The number is one of a transaction, not of a run, and means nothing to the trip. In a sharded database each shard has
// its own, as it has its own runs.

// Note says that a transaction has ended a run.
type Note struct {
	Run     int64
	JobID   int64
	Outcome job.Outcome
}

// noteEnds records which runs a transaction has ended, for followers, and which of them did not succeed, for lists. Changed is the
// number of rows that the transaction changed. If it is lower than expected, another node has ended and noted the others.
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
	if _, err := tx.Exec("note ends", query, encodeNotes(notes)); err != nil {
		return err
	}
	return noteFailures(tx, notes)
}

// noteRefused is noteEnds for runs that were never started. Their jobs are read from their rows.
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

// endsOf reads how runs have ended, those of them that have.
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
	found, err := sql.Select(tx, "read how runs ended", scan, query)
	out := make(map[int64]Note, len(found))
	for _, n := range found {
		out[n.Run] = n
	}
	return out, err
}

// noteFailures records runs that did not succeed, for lists.
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
	_, err := tx.Exec("note runs that did not succeed", query)
	return err
}

// encodeNotes writes notes as varints. Ids of one batch lie close together, so most take two bytes.
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

var errNotes = errors.New("a row of ending cannot be read")

// DecodeNotes reads what a row of `ending` holds.
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

// DropNotes removes rows of `ending` that are older than an instant, the oldest first, at most limit of them, and none behind an id. The
// latest row stays: followers learn from it which ids were given.
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
	return tx.Exec("drop notes of ends", query, upto, limit, int64(before))
}
