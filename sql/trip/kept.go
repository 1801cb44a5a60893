package trip

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"

	"go-crontab/job"
	"go-crontab/sql"
)

// An app may have a limit of kept output. Table app_output holds the sum for each limited app. The
// sum grows only after a run has ended, so starts and ends do no counting.
//
// Each count of an app has a number. A row of `output` stores the number of the count that
// includes it, and the row of app_output stores the number of the valid count. Both change in one
// transaction. So a run that is found twice is counted once, and only counted runs are subtracted.
// Runs are found in two ways: by the notes of their ends (see Note), and by one scan from the
// first due time on. The scan finds runs that ended before the notes were followed.
//
// Lock order: rows of output ascending, rows of run, rows of app_output ascending, the limit.

// OutputLimit is the limit of kept output of one app.
type OutputLimit struct {
	AppID int32
	App   string
	Limit job.Size
}

// OutputLimits lists the apps that have a limit of output.
func OutputLimits(r sql.Reader) ([]OutputLimit, error) {
	const query = `
		SELECT a.id, a.name, l.output
		FROM app_limit l
		STRAIGHT_JOIN app a FORCE INDEX (name) ON a.name = l.app
		WHERE l.output > 0
		ORDER BY a.id`

	scan := func(rows *sql.Rows) (l OutputLimit, err error) {
		err = rows.Scan(&l.AppID, &l.App, &l.Limit)
		return l, err
	}
	return sql.Select(r, "read output limits", scan, query)
}

// OutputSum is the counted kept output of an app.
type OutputSum struct {
	AppID int32
	Count int64 // the number of the count
	Bytes int64
	Upto  job.Micros // no counted run is due before this time
	Seen  job.Micros // see All
	All   bool       // the scan for earlier runs is complete; if false, it has counted runs due before Seen
}

// OutputSums are the sums of all apps that are counted.
type OutputSums struct {
	Counting bool  // the notes of ends are being followed
	Upto     int64 // the last note whose runs are counted
	Apps     map[int32]OutputSum
}

// ReadOutputSums reads the sums of output and the progress of the count.
func ReadOutputSums(r sql.Reader) (OutputSums, error) {
	const query = `
		SELECT app_id, count, GREATEST(bytes, 0), upto, COALESCE(seen, 0), seen IS NULL
		FROM app_output`

	scan := func(rows *sql.Rows) (s OutputSum, err error) {
		err = rows.Scan(&s.AppID, &s.Count, &s.Bytes, &s.Upto, &s.Seen, &s.All)
		return s, err
	}

	sums := OutputSums{Apps: map[int32]OutputSum{}}
	found, err := sql.Select(r, "read sums of output", scan, query)
	for _, s := range found {
		if s.AppID == 0 {
			sums.Counting, sums.Upto = true, int64(s.Upto)
			continue
		}
		sums.Apps[s.AppID] = s
	}

	return sums, err
}

// LastNote returns the id of the latest visible note of ends, or zero.
func LastNote(r sql.Reader) (int64, error) {
	const query = `
		SELECT COALESCE(MAX(id), 0)
		FROM ending`
	found, err := sql.Select(r, "read the latest recorded end", scanID, query)
	if err != nil {
		return 0, err
	}
	return found[0], nil
}

// FollowNotes starts to count runs by the notes with ids above upto. It restarts the scan for
// earlier runs in all apps.
func FollowNotes(tx *sql.Tx, upto int64) error {
	const begin = `
		INSERT INTO app_output (app_id, upto)
		VALUES (0, ?)
		ON DUPLICATE KEY UPDATE upto = VALUES(upto)`
	if _, err := tx.Exec("start counting output", begin, upto); err != nil {
		return err
	}

	const again = `
		UPDATE app_output
		SET seen = 0
		WHERE app_id > 0`
	_, err := tx.Exec("look for output that was not counted", again)
	return err
}

// ForgetNotes undoes FollowNotes. The notes may then be removed.
func ForgetNotes(tx *sql.Tx) error {
	const query = `
		DELETE FROM app_output
		WHERE app_id = 0`
	_, err := tx.Exec("stop counting output", query)
	return err
}

// nextCount is the number of a new count. No earlier count has this number, even if rows of
// app_output were removed.
const nextCount = "CAST(UNIX_TIMESTAMP(NOW(6)) * 1000000 AS SIGNED)"

// CountApps starts to count the given apps. New runs of other apps are not counted, so for these
// apps CountApps resets the scan for earlier runs.
func CountApps(tx *sql.Tx, apps []int32) error {
	forget := `
		UPDATE app_output
		SET seen = 0
		WHERE app_id > 0 AND app_id NOT IN ` + list(slices.Values(apps))
	if _, err := tx.Exec("remove sums of output", forget); err != nil {
		return err
	}

	begin := `
		INSERT INTO app_output (app_id, count)
		SELECT id, ` + nextCount + `
		FROM app FORCE INDEX (PRIMARY)
		WHERE id IN ` + list(slices.Values(apps)) + `
		ON DUPLICATE KEY UPDATE app_id = app_output.app_id`
	_, err := tx.Exec("start counting output of apps", begin)
	return err
}

// CountAgain starts a new count of an app's kept output at zero, because the stored sum does not
// match the output that the runs have.
func CountAgain(tx *sql.Tx, s OutputSum) error {
	const query = `
		UPDATE app_output FORCE INDEX (PRIMARY)
		SET count = GREATEST(count + 1, ` + nextCount + `), bytes = 0, upto = 0, seen = 0
		WHERE app_id = ? AND count = ?`
	_, err := tx.Exec("count output again", query, s.AppID, s.Count)
	return err
}

const (
	countNotes = 100    // rows of `ending` that one transaction counts at most
	countMost  = 10_000 // the most runs that one statement looks at, or a few more: see CountNotes and countEnd
)

// CountNotes counts the kept output of the given apps, for the runs in the next notes, up to note
// upto. It returns the last note that it counted. It does not split a note.
func CountNotes(tx *sql.Tx, apps []int32, from, upto int64) (counted int64, err error) {
	const query = `
		SELECT id, runs
		FROM ending FORCE INDEX (PRIMARY)
		WHERE id > ? AND id <= ?
		ORDER BY id
		LIMIT ?`

	type row struct {
		id   int64
		runs []byte
	}

	scan := func(rows *sql.Rows) (r row, err error) {
		err = rows.Scan(&r.id, &r.runs)
		return r, err
	}

	found, err := sql.Select(tx, "read recorded ends", scan, query, from, upto, countNotes)
	if err != nil {
		return 0, err
	}

	var ids []int64
	counted = upto
	for i, r := range found {
		notes, _ := DecodeNotes(r.runs) // a damaged row yields its readable part
		for _, n := range notes {
			ids = append(ids, n.Run)
		}
		if i == countNotes-1 || len(ids) >= countMost {
			counted = r.id
			break
		}
	}
	if err := countOutput(tx, apps, ids); err != nil {
		return 0, err
	}

	const move = `
		UPDATE app_output FORCE INDEX (PRIMARY)
		SET upto = ?
		WHERE app_id = 0 AND upto = ?`
	n, err := tx.Exec("advance the count of output", move, counted, from)
	return counted, expect("advance the count of output", n, 1, err)
}

// CountOld counts the next runs of an app that ended before the notes were followed.
func CountOld(tx *sql.Tx, s OutputSum) error {
	end, err := countEnd(tx, s.AppID, s.Seen)
	if err != nil {
		return err
	}

	const query = `
		SELECT id
		FROM run FORCE INDEX (by_app)
		WHERE app_id = ? AND due >= ? AND due < ? AND state = 'ended' AND output_kept > 0`
	ids, err := sql.Select(tx, "look for output of an app", scanID, query, s.AppID, int64(s.Seen), int64(end))
	if err != nil {
		return err
	}
	if err := countOutput(tx, []int32{s.AppID}, ids); err != nil {
		return err
	}

	const move = `
		UPDATE app_output FORCE INDEX (PRIMARY)
		SET seen = NULLIF(?, ?)
		WHERE app_id = ? AND count = ? AND seen = ?`
	n, err := tx.Exec("advance the count of output of an app", move,
		int64(end), int64(noEnd), s.AppID, s.Count, int64(s.Seen))
	return expect("advance the count of output of an app", n, 1, err)
}

// noEnd is later than all due times.
const noEnd job.Micros = math.MaxInt64

// countEnd bounds the app's next countMost runs from a due time on. It returns the end (excluded)
// of their due times. It does not split the runs of one due time.
func countEnd(r sql.Reader, app int32, from job.Micros) (job.Micros, error) {
	const query = `
		SELECT due
		FROM run FORCE INDEX (by_app)
		WHERE app_id = ? AND due >= ?
		ORDER BY due
		LIMIT 1 OFFSET ?`
	found, err := sql.Select(r, "limit a look at runs of an app", scanID, query, app, int64(from), countMost)
	if err != nil || len(found) == 0 {
		return noEnd, err
	}
	return max(job.Micros(found[0]), from+1), nil
}

// keptRun is an ended run with kept output.
type keptRun struct {
	id    int64
	app   int32
	due   job.Micros
	bytes int64
	count int64 // the valid count of its app; zero: none
}

// keptRuns returns the given runs that have kept output.
func keptRuns(r sql.Reader, ids []int64) ([]keptRun, error) {
	if len(ids) == 0 {
		return nil, nil
	}

	// LEAST keeps the sum from overflowing if output_kept was changed outside the program.
	const query = `
		SELECT r.id, r.app_id, r.due, LEAST(r.output_kept, 1073741824), COALESCE(a.count, 0)
		FROM JSON_TABLE(?, '$[*]' COLUMNS (id BIGINT PATH '$[0]')) n
		STRAIGHT_JOIN run r FORCE INDEX (PRIMARY) ON r.id = n.id
		LEFT JOIN app_output a ON a.app_id = r.app_id
		WHERE r.state = 'ended' AND r.output_kept > 0`

	scan := func(rows *sql.Rows) (k keptRun, err error) {
		err = rows.Scan(&k.id, &k.app, &k.due, &k.bytes, &k.count)
		return k, err
	}
	return sql.Select(r, "read how much output is kept", scan, query, singles(ids))
}

// lockOutputs locks the rows of output of runs. It returns the stored count number of each run,
// and the runs with parts. A run without a row of output is missing from the result.
func lockOutputs(tx *sql.Tx, ids []int64) (out map[int64]int64, parted []int64, err error) {
	out = make(map[int64]int64, len(ids))
	for part := range slices.Chunk(slices.Sorted(slices.Values(ids)), 500) {
		query := `
			SELECT run_id, counted, parts
			FROM output FORCE INDEX (PRIMARY)
			WHERE run_id IN ` + list(slices.Values(part)) + `
			ORDER BY run_id
			FOR UPDATE`
		type row struct{ id, count, parts int64 }
		scan := func(rows *sql.Rows) (o row, err error) {
			err = rows.Scan(&o.id, &o.count, &o.parts)
			return o, err
		}
		found, err := sql.Select(tx, "lock output", scan, query)
		if err != nil {
			return nil, nil, err
		}

		for _, o := range found {
			out[o.id] = o.count
			if o.parts > 0 {
				parted = append(parted, o.id)
			}
		}
	}

	return out, parted, nil
}

// countOutput adds the runs of the given apps to the sums, unless they are counted already.
func countOutput(tx *sql.Tx, apps []int32, ids []int64) error {
	found, err := keptRuns(tx, ids)
	if err != nil {
		return err
	}

	ids = nil
	for _, k := range found {
		if k.count != 0 && slices.Contains(apps, k.app) {
			ids = append(ids, k.id)
		}
	}

	counted, _, err := lockOutputs(tx, ids)
	if err != nil {
		return err
	}

	// Read again: now that the rows are locked, no other transaction can remove the output.
	if found, err = keptRuns(tx, slices.Collect(maps.Keys(counted))); err != nil {
		return err
	}

	sums := map[int32]OutputSum{}
	byCount := map[int64][]int64{}
	for _, k := range found {
		if k.count == 0 || counted[k.id] == k.count {
			continue
		}
		byCount[k.count] = append(byCount[k.count], k.id)
		s, is := sums[k.app]
		if !is {
			s.Upto = noEnd
		}
		sums[k.app] = OutputSum{AppID: k.app, Count: k.count, Bytes: s.Bytes + k.bytes, Upto: min(s.Upto, k.due)}
	}

	for count, ids := range byCount {
		if err := markCounted(tx, count, ids); err != nil {
			return err
		}
	}

	for _, app := range slices.Sorted(maps.Keys(sums)) {
		if err := addOutput(tx, sums[app]); err != nil {
			return err
		}
	}

	return nil
}

// markCounted marks runs as included in a count.
func markCounted(tx *sql.Tx, count int64, ids []int64) error {
	const query = `
		UPDATE JSON_TABLE(?, '$[*]' COLUMNS (id BIGINT PATH '$[0]')) n
		STRAIGHT_JOIN output o FORCE INDEX (PRIMARY) ON o.run_id = n.id
		SET o.counted = ?`
	_, err := tx.Exec("record counted output", query, singles(ids), count)
	return err
}

// addOutput adds to the sum of an app.
func addOutput(tx *sql.Tx, s OutputSum) error {
	const query = `
		UPDATE app_output FORCE INDEX (PRIMARY)
		SET bytes = LEAST(GREATEST(bytes, 0), 1 << 61) + ?, upto = LEAST(upto, ?)
		WHERE app_id = ? AND count = ?`
	n, err := tx.Exec("add to the output of an app", query, s.Bytes, int64(s.Upto), s.AppID, s.Count)
	return expect("add to the output of an app", n, 1, err)
}

// uncountOutput subtracts the output of runs from the sums that include it. It locks the rows of
// output, and removes the parts of the output.
func uncountOutput(tx *sql.Tx, ids []int64) error {
	counted, parted, err := lockOutputs(tx, ids)
	if err != nil {
		return err
	}
	if err := dropParts(tx, parted); err != nil {
		return err
	}

	maps.DeleteFunc(counted, func(_, count int64) bool { return count == 0 })
	found, err := keptRuns(tx, slices.Collect(maps.Keys(counted)))
	if err != nil {
		return err
	}

	sums := map[int32]OutputSum{}
	for _, k := range found {
		if counted[k.id] == k.count {
			sums[k.app] = OutputSum{AppID: k.app, Count: k.count, Bytes: sums[k.app].Bytes + k.bytes}
		}
	}

	const query = `
		UPDATE app_output FORCE INDEX (PRIMARY)
		SET bytes = GREATEST(GREATEST(bytes, 0) - ?, 0)
		WHERE app_id = ? AND count = ?`
	for _, app := range slices.Sorted(maps.Keys(sums)) {
		_, err := tx.Exec("subtract from the output of an app", query, sums[app].Bytes, app, sums[app].Count)
		if err != nil {
			return err
		}
	}

	return nil
}

// KeptOutput is the counted output of a run.
type KeptOutput struct {
	Run   int64
	Due   job.Micros
	Bytes int64
}

// OldestOutput lists counted output of an app, the earliest due first, at most limit. It looks at
// a bounded number of runs. It returns the due time where it stopped, and whether it has passed
// all runs.
func OldestOutput(r sql.Reader, s OutputSum, limit int) (out []KeptOutput, end job.Micros, last bool, err error) {
	end, err = countEnd(r, s.AppID, s.Upto)
	if err != nil {
		return nil, 0, false, err
	}

	query := `
		SELECT r.id, r.due, LEAST(r.output_kept, 1073741824)
		FROM run r FORCE INDEX (by_app)
		STRAIGHT_JOIN output o FORCE INDEX (PRIMARY) ON o.run_id = r.id
		WHERE r.app_id = ? AND r.due >= ? AND r.due < ? AND r.state = 'ended' AND r.output_kept > 0 AND o.counted = ?
		ORDER BY r.due, r.id
		LIMIT ` + strconv.Itoa(limit)

	scan := func(rows *sql.Rows) (o KeptOutput, err error) {
		err = rows.Scan(&o.Run, &o.Due, &o.Bytes)
		return o, err
	}

	out, err = sql.Select(r, "find old output of an app", scan, query, s.AppID, int64(s.Upto), int64(end), s.Count)
	if len(out) == limit {
		return out, out[limit-1].Due, false, err
	}

	return out, end, end == noEnd, err
}

// DropOutput removes the output of runs of an app, but not the rows of the runs. It notes that the
// app has no counted output of runs due before upto. If the app's limit has changed, or the sum
// belongs to another count, the error is sql.ErrMoved.
func DropOutput(tx *sql.Tx, l OutputLimit, s OutputSum, runs []KeptOutput, upto job.Micros) error {
	if len(runs) > 0 {
		ids := singles(idsOfKept(runs))
		if err := uncountOutput(tx, idsOfKept(runs)); err != nil {
			return err
		}
		const note = `
			UPDATE JSON_TABLE(?, '$[*]' COLUMNS (id BIGINT PATH '$[0]')) n
			STRAIGHT_JOIN run r FORCE INDEX (PRIMARY) ON r.id = n.id
			SET r.output_kept = 0
			WHERE r.state = 'ended'`
		if _, err := tx.Exec("record removed output", note, ids); err != nil {
			return err
		}
		if _, err := tx.Exec("drop old output", dropOutputs, ids); err != nil {
			return err
		}
	}

	const move = `
		UPDATE app_output FORCE INDEX (PRIMARY)
		SET upto = ?
		WHERE app_id = ? AND count = ? AND upto = ?`
	n, err := tx.Exec("record where an app has output", move,
		int64(min(upto, noEnd-1)), s.AppID, s.Count, int64(s.Upto))
	if err := expect("record where an app has output", n, 1, err); err != nil {
		return err
	}

	return holdOutputLimit(tx, l)
}

func idsOfKept(runs []KeptOutput) []int64 {
	ids := make([]int64, len(runs))
	for i := range runs {
		ids[i] = runs[i].Run
	}
	return ids
}

// holdOutputLimit keeps others from changing the limit of an app while the transaction commits.
func holdOutputLimit(tx *sql.Tx, l OutputLimit) error {
	const query = `
		SELECT COALESCE(output, 0)
		FROM app_limit FORCE INDEX (PRIMARY)
		WHERE app = ?
		LOCK IN SHARE MODE`
	found, err := sql.Select(tx, "lock the output limit", scanID, query, l.App)
	if err == nil && (len(found) == 0 || job.Size(found[0]) != l.Limit) {
		err = fmt.Errorf("lock the output limit of app %q: %w", l.App, sql.ErrMoved)
	}
	return err
}
