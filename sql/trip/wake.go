package trip

import (
	"slices"

	"go-crontab/job"
	"go-crontab/sql"
)

// WakeJobs gives the turn to the next waiting run of each job: that run becomes idle and is due
// now. If a run of the job still has the turn, WakeJobs marks the run with the turn as awaited
// instead, so its end wakes the next run. The transaction has locked the rows of the jobs.
// afterSchedule has the jobs whose last run was not of a backfill. In these jobs a backfill's run
// goes first.
func WakeJobs(tx *sql.Tx, jobs []int64, afterSchedule map[int64]bool, now job.Micros) (woken int, err error) {
	next, err := nextOf(tx, jobs, afterSchedule)
	if err != nil || len(next) == 0 {
		return 0, err
	}

	turns, err := turnsOf(tx, jobs)
	if err != nil {
		return 0, err
	}

	var wake, awaited []int64
	jobOf := map[int64]int64{}
	for id, run := range next {
		jobOf[run] = id
		if turns[id] != 0 {
			awaited = append(awaited, turns[id])
		} else {
			wake = append(wake, run)
		}
	}

	if _, err := MarkAwaited(tx, awaited); err != nil {
		return 0, err
	}

	found, err := wakeRuns(tx, wake, 0, now)
	if err != nil || len(found) == 0 {
		return 0, err
	}

	return len(found), passTurns(tx, found, jobOf)
}

// passTurns writes the runs that have the turn into the rows of their jobs.
func passTurns(tx *sql.Tx, runs []int64, jobOf map[int64]int64) error {
	turns := jsonRows(len(runs))
	for _, run := range runs {
		turns.begin()
		turns.number(jobOf[run])
		turns.number(run)
		turns.end()
	}

	const query = `
		UPDATE JSON_TABLE(?, '$[*]' COLUMNS (
			id BIGINT PATH '$[0]', running BIGINT PATH '$[1]')) n
		STRAIGHT_JOIN job j FORCE INDEX (PRIMARY) ON j.id = n.id
		SET j.running = n.running`
	_, err := tx.Exec("pass on the turn", query, turns.json())
	return err
}

// nextOf returns, by job, the next run in its line.
func nextOf(tx *sql.Tx, jobs []int64, afterSchedule map[int64]bool) (map[int64]int64, error) {
	out := map[int64]int64{}
	one := func(int) int { return 1 }
	for part := range slices.Chunk(jobs, 50) {
		lines := make([]span, 0, 2*len(part))
		for _, id := range part {
			lines = append(lines, scheduleLine(id), backfillLine(id))
		}
		found, err := firsts(tx, lines, one)
		if err != nil {
			return nil, err
		}
		for _, h := range found {
			if _, other := out[h.JobID]; !other || (h.Kind == Backfill) == afterSchedule[h.JobID] {
				out[h.JobID] = h.Launch.Run
			}
		}
	}

	return out, nil
}

// turnsOf returns, by job, the run that has the turn. It leaves out ended runs.
func turnsOf(tx *sql.Tx, jobs []int64) (map[int64]int64, error) {
	out := map[int64]int64{}
	query := `
		SELECT j.id, j.running
		FROM job j FORCE INDEX (PRIMARY)
		STRAIGHT_JOIN run r FORCE INDEX (PRIMARY) ON r.id = j.running
		WHERE r.state <> 'ended' AND j.id IN ` + list(slices.Values(jobs))

	scan := func(rows *sql.Rows) (turn [2]int64, err error) {
		err = rows.Scan(&turn[0], &turn[1])
		return turn, err
	}

	found, err := sql.Select(tx, "read whose turn it is", scan, query)
	for _, turn := range found {
		out[turn[0]] = turn[1]
	}

	return out, err
}

// wakeRuns makes waiting runs idle and due now, and returns the runs that it woke. It skips locked
// rows. It also marks the woken runs as awaited, because the rest of the line now waits for their
// ends.
func wakeRuns(tx *sql.Tx, ids []int64, group int32, now job.Micros) ([]int64, error) {
	if len(ids) == 0 {
		return nil, nil
	}

	query := `
		SELECT id
		FROM run FORCE INDEX (PRIMARY)
		WHERE owner = -1 AND state = 'waiting' AND id IN ` + list(slices.Values(ids)) + `
		ORDER BY id
		FOR UPDATE SKIP LOCKED`

	found, err := sql.Select(tx, "lock runs to wake", scanID, query)
	if err != nil || len(found) == 0 {
		return nil, err
	}

	change := `
		UPDATE run FORCE INDEX (PRIMARY)
		SET state = 'idle', owner = 0, due_now = ?, grp = ?, awaited = awaited & 7 | 1
		WHERE id IN ` + list(slices.Values(found))
	n, err := tx.Exec("wake runs", change, int64(now), -group)
	return found, expect("wake runs", n, len(found), err)
}

// WakeAll wakes all waiting runs of jobs, in any line. After an edit these runs may start, or must
// wait for a different run. The transaction has locked the rows of the jobs. WakeAll reads all
// waiting runs of the cluster, and returns the number of runs that it woke.
func WakeAll(tx *sql.Tx, jobs []int64, now job.Micros) (int, error) {
	if len(jobs) == 0 {
		return 0, nil
	}

	query := `
		SELECT id
		FROM run FORCE INDEX (live)
		WHERE owner = -1 AND job_id IN ` + list(slices.Values(jobs))

	found, err := sql.Select(tx, "list waiting runs of jobs", scanID, query)
	if err != nil || len(found) == 0 {
		return 0, err
	}

	woken, err := wakeRuns(tx, found, 0, now)
	return len(woken), err
}
