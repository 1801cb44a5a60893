package trip

import (
	"fmt"
	"slices"

	"go-crontab/job"
	"go-crontab/sql"
)

// expect returns sql.ErrMoved unless exactly `want` rows changed. A row that did not change was
// changed by another transaction.
func expect(what string, n int64, want int, err error) error {
	if err == nil && n != int64(want) {
		err = fmt.Errorf("%s: changed %d rows, expected %d: %w", what, n, want, sql.ErrMoved)
	}
	return err
}

// at returns the guard of every state change. It admits only rows with this owner and state that
// are still at these launches.
func at(owner Owner, state State, launches []Launch) string {
	byClaim := map[int32][]Launch{} // nearly all runs are claimed once, so this is usually one list
	for _, l := range launches {
		byClaim[l.Claim] = append(byClaim[l.Claim], l)
	}

	guard := ""
	for claim, part := range byClaim {
		if guard != "" {
			guard += " OR "
		}
		guard += fmt.Sprintf("claim = %d AND id IN %s", claim, each(part, func(l *Launch) int64 { return l.Run }))
	}

	return fmt.Sprintf("owner = %d AND state = '%s' AND (%s)", owner, state, guard)
}

// Start moves prepared runs of a session to executing, and returns their number. Nothing may be
// spawned for a run after max(due_now, now) + window microseconds. The transaction has locked the
// rows of their jobs, and the group whose slots they take; group zero means none. With watched,
// the ends of the runs have consequences.
func Start(
	tx *sql.Tx, session Owner, group int32, watched bool, launches []Launch, now job.Micros, window int64,
) (int64, error) {
	if len(launches) == 0 {
		return 0, nil
	}
	watch := ""
	if watched {
		watch = ", awaited = awaited & 7 | 2"
	}
	query := `
		UPDATE run FORCE INDEX (PRIMARY)
		SET state = 'executing', session = owner, grp = ?, started = ?, spawn_by = GREATEST(due_now, ?) + ?` + watch + `
		WHERE ` + at(session, Prepared, launches)
	n, err := tx.Exec("start runs", query, group, int64(now), int64(now), window)
	tx.Started(n)
	return n, err
}

// StartedAmong returns the launches that execute for a session. It locks the rows, and waits until
// no other transaction has locked them. So it also waits for a COMMIT whose reply was lost.
func StartedAmong(tx *sql.Tx, session Owner, launches []Launch) (map[Launch]bool, error) {
	return among(tx, session, Executing, launches)
}

// EndedAmong returns the launches that have ended. It locks the rows as StartedAmong does.
func EndedAmong(tx *sql.Tx, launches []Launch) (map[Launch]bool, error) {
	return among(tx, EndedOwner, Ended, launches)
}

func among(tx *sql.Tx, owner Owner, state State, launches []Launch) (map[Launch]bool, error) {
	out := map[Launch]bool{}
	if len(launches) == 0 {
		return out, nil
	}

	query := `
		SELECT id, claim
		FROM run FORCE INDEX (PRIMARY)
		WHERE ` + at(owner, state, launches) + `
		FOR UPDATE`

	scan := func(rows *sql.Rows) (l Launch, err error) {
		err = rows.Scan(&l.Run, &l.Claim)
		return l, err
	}

	found, err := sql.Select(tx, "read "+string(state)+" runs", scan, query)
	for _, l := range found {
		out[l] = true
	}

	return out, err
}

// Begun is the change that a start makes to the row of a job.
type Begun struct {
	JobID   int64
	To      job.Micros // the latest scheduled due time that has begun; zero: none
	Running int64      // the run that has the turn now; zero: unchanged
}

// MarkBegun writes the rows of jobs that the transaction has locked. A start writes these rows
// even if nothing changes, because a multi-writer cluster compares only the written rows of
// transactions.
func MarkBegun(tx *sql.Tx, begun []Begun) error {
	if len(begun) == 0 {
		return nil
	}

	r := jsonRows(len(begun))
	for _, b := range begun {
		r.begin()
		r.number(b.JobID)
		r.number(int64(b.To))
		r.number(b.Running)
		r.end()
	}

	const query = `
		UPDATE JSON_TABLE(?, '$[*]' COLUMNS (
			id BIGINT PATH '$[0]', begun_to BIGINT PATH '$[1]', running BIGINT PATH '$[2]')) n
		STRAIGHT_JOIN job j FORCE INDEX (PRIMARY) ON j.id = n.id
		SET j.begun_to = GREATEST(j.begun_to, n.begun_to), j.running = IF(n.running = 0, j.running, n.running)`

	n, err := tx.Exec("mark jobs as begun", query, r.json())
	return expect("mark jobs as begun", n, len(begun), err)
}

// Uncrowd clears the crowded flag of locked jobs. A job is crowded while runs execute that began
// before an edit made its runs exclude each other. All such runs have ended.
func Uncrowd(tx *sql.Tx, jobs []int64) error {
	if len(jobs) == 0 {
		return nil
	}
	query := `
		UPDATE job FORCE INDEX (PRIMARY)
		SET crowded = 0
		WHERE id IN ` + list(slices.Values(jobs))
	_, err := tx.Exec("clear crowded jobs", query)
	return err
}
