package trip

import (
	"maps"
	"slices"

	"go-crontab/job"
	"go-crontab/sql"
)

// EndPauses ends the pauses of jobs and writes an audit line for each. The caller has locked the
// jobs' rows, has checked that the pauses are over, and moves the cursors next.
func EndPauses(tx *sql.Tx, jobs []int64, by job.Actor, now job.Micros) error {
	if len(jobs) == 0 {
		return nil
	}

	ids := list(slices.Values(jobs))
	note := `
		INSERT INTO audit (at, who, origin, action, kind, ref, app, name, reason)
		SELECT ?, ?, ?, ?, ?, j.id, a.name, j.name, 'its pause had an end'
		FROM job j FORCE INDEX (PRIMARY)
		STRAIGHT_JOIN app a ON a.id = j.app_id
		WHERE j.id IN ` + ids
	_, err := tx.Exec("audit ends of pauses", note, int64(now), by.Who, by.Origin, job.ActionResume, job.KindJob)
	if err != nil {
		return err
	}

	change := `
		UPDATE job FORCE INDEX (PRIMARY)
		SET resumed = next_due, paused = 0, changes = changes + 1, parked = NULL
		WHERE id IN ` + ids
	n, err := tx.Exec("end pauses", change)
	if err := expect("end pauses", n, len(jobs), err); err != nil {
		return err
	}

	return DropPauses(tx, jobs)
}

// Break records why the due times of jobs cannot be computed.
func Break(tx *sql.Tx, why map[int64]string) error {
	if len(why) == 0 {
		return nil
	}

	r := jsonRows(len(why))
	for id, text := range why {
		r.begin()
		r.number(id)
		r.text(text)
		r.end()
	}

	const query = `
		UPDATE JSON_TABLE(?, '$[*]' COLUMNS (id BIGINT PATH '$[0]', error VARCHAR(512) PATH '$[1]')) n
		STRAIGHT_JOIN job j FORCE INDEX (PRIMARY) ON j.id = n.id
		SET j.error = n.error`
	if _, err := tx.Exec("mark jobs as broken", query, r.json()); err != nil {
		return err
	}

	note := `
		INSERT INTO audit (at, who, action, kind, ref, app, name, reason)
		SELECT ` + serverNow + `, ?, ?, ?, j.id, a.name, j.name, j.error
		FROM job j FORCE INDEX (PRIMARY)
		STRAIGHT_JOIN app a ON a.id = j.app_id
		WHERE j.id IN ` + list(maps.Keys(why))
	_, err := tx.Exec("audit broken jobs", note, job.Itself, job.ActionBreak, job.KindJob)
	return err
}
