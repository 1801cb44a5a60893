package sql

import (
	"context"
	stdsql "database/sql"
	"fmt"
	"slices"

	"go-crontab/job"

	"github.com/google/uuid"
)

// OutputSum is the counted kept output of an app.
type OutputSum struct {
	Bytes int64
	Upto  int64 // runs up to this id have no output any more
}

// outputCursor names the row of app_output that says how far history is counted. No app has this name.
const outputCursor = ""

// OutputSum returns the kept output of an app as far as it is counted, and up to which record that is.
func (db *DB) OutputSum(ctx context.Context, app string) (sum OutputSum, counted int64, err error) {
	err = db.query(ctx, "read the sum of an app's output", func(rows *stdsql.Rows) error {
		var of string
		var s OutputSum
		err := rows.Scan(&of, &s.Bytes, &s.Upto)
		if of == outputCursor {
			counted = s.Upto
		} else {
			sum = s
		}
		return err
	}, "SELECT app, bytes, upto FROM app_output WHERE app IN (?, ?)", outputCursor, app)
	return sum, counted, err
}

// keptOutput is how much output of a run of history h is kept. What a hand wrote there leaves room to add it up.
const keptOutput = "LEAST(h.output_kept, 1073741824)"

// LastRecord returns the id of the latest record.
func (db *DB) LastRecord(ctx context.Context) (id int64, err error) {
	err = db.query(ctx, "read the latest record", func(rows *stdsql.Rows) error { return rows.Scan(&id) },
		"SELECT COALESCE(MAX(id), 0) FROM history")
	return id, err
}

// recordsUpTo limits how many records the next statement reads: it returns the id of the LookMost-th record after an id, or nothing
// if there are fewer.
const recordsUpTo = `
	SELECT id
	FROM history FORCE INDEX (PRIMARY)
	WHERE id > ? AND id <= ?
	ORDER BY id
	LIMIT 1 OFFSET ?`

// holdOutputCursor locks the sums until the transaction ends. A transaction takes this lock last.
func (tx *Tx) holdOutputCursor() (counted int64, found bool, err error) {
	n, err := tx.exec("hold sums of output",
		"UPDATE app_output FORCE INDEX (PRIMARY) SET "+next("taken")+" WHERE app = ?", outputCursor)
	if err != nil || n == 0 {
		return 0, false, err
	}
	err = tx.query("read how far output is counted", func(rows *stdsql.Rows) error { return rows.Scan(&counted) },
		"SELECT upto FROM app_output FORCE INDEX (PRIMARY) WHERE app = ?", outputCursor)
	return counted, true, err
}

// CountOutput adds the output of the next records to the sums of their apps, up to an id and LookMost records at most. It
// returns up to where records are counted then. The sums and the place change together, so no record counts twice.
func (tx *Tx) CountOutput(end int64) (counted int64, err error) {
	from, found, err := tx.holdOutputCursor()
	if err != nil {
		return 0, err
	}
	if !found {
		if _, err := tx.exec("forget sums of output", "DELETE FROM app_output"); err != nil {
			return 0, err
		}
		if _, err := tx.exec("begin to count output", "INSERT INTO app_output (app) VALUES (?)", outputCursor); err != nil {
			return 0, err
		}
	}
	if from >= end {
		return from, nil
	}

	err = tx.query("bound what is counted", func(rows *stdsql.Rows) error { return rows.Scan(&end) },
		recordsUpTo, from, end, LookMost-1)
	if err != nil {
		return 0, err
	}
	sums := map[string]int64{}
	err = tx.query("count output", func(rows *stdsql.Rows) error {
		var app string
		var bytes int64
		err := rows.Scan(&app, &bytes)
		sums[app] = bytes
		return err
	}, `
		SELECT `+appOfRun+` AS app, SUM(`+keptOutput+`)
		FROM history h FORCE INDEX (PRIMARY)
		STRAIGHT_JOIN job j ON j.id = h.job_id
		WHERE h.id > ? AND h.id <= ? AND h.output_kept > 0
		GROUP BY 1`, from, end)
	if err != nil {
		return 0, err
	}

	for app, bytes := range sums {
		_, err := tx.exec("add to the sum of an app", `
			INSERT INTO app_output (app, bytes) VALUES (?, ?)
			ON DUPLICATE KEY UPDATE `+added("bytes"), app, bytes, bytes)
		if err != nil {
			return 0, err
		}
	}
	_, err = tx.exec("move on in counting", "UPDATE app_output SET upto = ? WHERE app = ?", end, outputCursor)
	return end, err
}

// RecountOutput forgets all sums, so that counting begins with the first record again.
func (tx *Tx) RecountOutput() error {
	if _, err := tx.exec("forget sums of output", "DELETE FROM app_output WHERE app <> ?", outputCursor); err != nil {
		return err
	}
	_, err := tx.exec("count output again", "UPDATE app_output SET upto = 0 WHERE app = ?", outputCursor)
	return err
}

// KeptOutput is the output of a run that is kept.
type KeptOutput struct {
	ID     int64
	App    string
	Launch job.Launch
	Bytes  int64
}

// OldestOutput lists runs of an app that have output, in the order of their records: behind one record, up to another, and no
// more than some. It looks at LookMost records at most, whosever they are, and returns where it stopped.
func (db *DB) OldestOutput(ctx context.Context, app string, after, upto int64, limit int) (out []KeptOutput, end int64, err error) {
	end = upto
	err = db.query(ctx, "bound the search for output", func(rows *stdsql.Rows) error { return rows.Scan(&end) },
		recordsUpTo, after, upto, LookMost-1)
	if err != nil {
		return nil, 0, err
	}

	err = db.query(ctx, "find output of an app", func(rows *stdsql.Rows) error {
		o := KeptOutput{App: app}
		var session uuid.UUID
		err := rows.Scan(&o.ID, &session, &o.Launch.N, &o.Bytes)
		o.Launch.Session = session
		out = append(out, o)
		return err
	}, `
		SELECT h.id, h.session_id, h.launch, `+keptOutput+`
		FROM history h FORCE INDEX (PRIMARY)
		STRAIGHT_JOIN job j ON j.id = h.job_id
		WHERE h.id > ? AND h.id <= ? AND h.app = ? AND h.output_kept > 0 AND `+appOfRun+` = ?
		ORDER BY h.id
		LIMIT ?`, after, end, appNumber(app), app, limit)
	if len(out) == limit {
		end = out[limit-1].ID
	}
	return out, end, err
}

// DropOutput removes the output of some runs of an app, whose records stay, and notes that the app has none up to an id.
// It returns ErrMoved if the app's limit is not the given one any more: then nothing may go by it.
func (tx *Tx) DropOutput(app string, limit job.Size, runs []KeptOutput, upto int64) error {
	kept, err := tx.keptNow(runs)
	if err != nil {
		return err
	}
	if len(kept) > 0 {
		list, args := in(nil, recordsOf(kept))
		_, err := tx.exec("note that output is removed",
			"UPDATE history FORCE INDEX (PRIMARY) SET output_kept = 0 WHERE id IN "+list, args...)
		if err != nil {
			return err
		}
		if err := tx.dropOutputs(launchesOfKept(kept)); err != nil {
			return err
		}
	}

	if err := tx.uncount(kept); err != nil {
		return err
	}
	_, err = tx.exec("note where an app has output", "UPDATE app_output SET upto = GREATEST(upto, ?) WHERE app = ?", upto, app)
	if err != nil {
		return err
	}
	return tx.holdOutputLimit(app, limit)
}

// holdOutputLimit keeps others from changing the limits of an app while this transaction commits.
func (tx *Tx) holdOutputLimit(app string, limit job.Size) error {
	var stands job.Size
	err := tx.query("hold the limit of output", func(rows *stdsql.Rows) error { return rows.Scan(&stands) },
		"SELECT COALESCE(output, 0) FROM app_limit FORCE INDEX (PRIMARY) WHERE app = ? LOCK IN SHARE MODE", app)
	if err == nil && stands != limit {
		err = fmt.Errorf("hold the limit of app %s: %w", app, ErrMoved)
	}
	return err
}

// keptNow locks the records of some runs and returns those that still have output: somebody may have removed others since
// they were listed.
func (tx *Tx) keptNow(runs []KeptOutput) ([]KeptOutput, error) {
	if len(runs) == 0 {
		return nil, nil
	}
	bytes := map[int64]int64{}
	list, args := in(nil, recordsOf(runs))
	err := tx.query("hold records with output", func(rows *stdsql.Rows) error {
		var id, n int64
		err := rows.Scan(&id, &n)
		bytes[id] = n
		return err
	}, "SELECT h.id, "+keptOutput+" FROM history h FORCE INDEX (PRIMARY) WHERE h.id IN "+list+" ORDER BY h.id FOR UPDATE", args...)

	var out []KeptOutput
	for _, o := range runs {
		if o.Bytes = bytes[o.ID]; o.Bytes > 0 {
			out = append(out, o)
		}
	}
	return out, err
}

// counting reports whether output is being counted. The first look counts nothing, so a transaction that reads false here
// commits long before anything is counted.
func (tx *Tx) counting() (found bool, err error) {
	err = tx.query("look whether output is counted", func(rows *stdsql.Rows) error { return rows.Scan((*flag)(&found)) },
		"SELECT EXISTS (SELECT 1 FROM app_output WHERE app = ?)", outputCursor)
	return found, err
}

// uncount takes output that goes in this transaction from the sums of its apps, as far as it was counted. While nobody counts
// it does nothing.
func (tx *Tx) uncount(gone []KeptOutput) error {
	if len(gone) == 0 {
		return nil
	}
	counted, found, err := tx.holdOutputCursor()
	if err != nil || !found {
		return err
	}
	sums := map[string]int64{}
	for _, o := range gone {
		if o.ID <= counted {
			sums[o.App] += o.Bytes
		}
	}
	for app, bytes := range sums {
		_, err := tx.exec("take from the sum of an app",
			"UPDATE app_output SET bytes = GREATEST(GREATEST(bytes, 0) - ?, 0) WHERE app = ?", bytes, app)
		if err != nil {
			return err
		}
	}
	return nil
}

// dropOutputs removes rows of output.
func (tx *Tx) dropOutputs(launches map[uuid.UUID][]int64) error {
	for session, counters := range launches {
		slices.Sort(counters)
		list, args := in([]any{session[:]}, counters)
		_, err := tx.exec("drop old output",
			"DELETE o FROM output o FORCE INDEX (PRIMARY) WHERE o.session_id = ? AND o.launch IN "+list, args...)
		if err != nil {
			return err
		}
	}
	return nil
}

func recordsOf(runs []KeptOutput) []int64 {
	ids := make([]int64, len(runs))
	for i := range runs {
		ids[i] = runs[i].ID
	}
	slices.Sort(ids)
	return ids
}

func launchesOfKept(runs []KeptOutput) map[uuid.UUID][]int64 {
	out := map[uuid.UUID][]int64{}
	for _, o := range runs {
		out[o.Launch.Session] = append(out[o.Launch.Session], o.Launch.N)
	}
	return out
}
