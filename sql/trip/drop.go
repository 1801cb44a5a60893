package trip

import (
	"fmt"
	"slices"

	"go-crontab/job"
	"go-crontab/sql"
)

// OldRun is an ended run that retention removes.
type OldRun struct {
	ID      int64
	Due     job.Micros
	Outcome job.Outcome
	Output  bool // it has a row of output
	Large   bool // its output may have parts
}

// dropOutputs removes the output of runs.
const dropOutputs = `
	DELETE o
	FROM JSON_TABLE(?, '$[*]' COLUMNS (id BIGINT PATH '$[0]')) n
	STRAIGHT_JOIN output o FORCE INDEX (PRIMARY) ON o.run_id = n.id`

// DropRuns removes ended runs with their output and their entries in lists. It finds all rows by
// primary keys, so it locks no row that stays.
func DropRuns(tx *sql.Tx, runs []OldRun) error {
	var ids, outputs []int64
	notable := map[job.Outcome][]OldRun{}
	for _, r := range runs {
		ids = append(ids, r.ID)
		if r.Output {
			outputs = append(outputs, r.ID)
		}
		if r.Outcome != 0 && r.Outcome != job.Succeeded {
			notable[r.Outcome] = append(notable[r.Outcome], r)
		}
	}

	slices.Sort(ids)
	slices.Sort(outputs)

	const dropRuns = `
		DELETE r
		FROM JSON_TABLE(?, '$[*]' COLUMNS (id BIGINT PATH '$[0]')) n
		STRAIGHT_JOIN run r FORCE INDEX (PRIMARY) ON r.id = n.id
		WHERE r.state = 'ended'`
	if len(ids) == 0 {
		return nil
	}
	if err := uncountOutput(tx, outputs); err != nil {
		return err
	}
	if _, err := tx.Exec("drop old runs", dropRuns, singles(ids)); err != nil {
		return err
	}
	if len(outputs) > 0 {
		if _, err := tx.Exec("drop old output", dropOutputs, singles(outputs)); err != nil {
			return err
		}
	}

	for outcome := job.Failed; outcome <= job.LastOutcome; outcome++ {
		if err := dropNotable(tx, outcome, notable[outcome]); err != nil {
			return err
		}
	}

	return nil
}

// dropNotable removes the list entries of runs with the given outcome.
func dropNotable(tx *sql.Tx, outcome job.Outcome, runs []OldRun) error {
	if len(runs) == 0 {
		return nil
	}

	r := jsonRows(len(runs))
	for i := range runs {
		r.begin()
		r.number(int64(runs[i].Due))
		r.number(runs[i].ID)
		r.end()
	}

	query := `
		DELETE t
		FROM JSON_TABLE(?, '$[*]' COLUMNS (due BIGINT PATH '$[0]', id BIGINT PATH '$[1]')) n
		STRAIGHT_JOIN notable t FORCE INDEX (PRIMARY)
			ON t.outcome = '` + outcome.String() + `' AND t.due = n.due AND t.run_id = n.id`
	_, err := tx.Exec("drop old records of failed runs", query, r.json())
	return err
}

// HoldVersion keeps others from changing a job. If the version of the job has changed, the error
// is sql.ErrMoved. HoldVersion comes last in a transaction that removes runs. So the job's row is
// locked only during the COMMIT, and starts hardly wait.
func HoldVersion(tx *sql.Tx, jobID int64, version int32) error {
	const query = `
		SELECT version
		FROM job FORCE INDEX (PRIMARY)
		WHERE id = ?
		LOCK IN SHARE MODE`
	found, err := sql.Select(tx, "lock the retention of a job", scanID, query, jobID)
	if err == nil && (len(found) == 0 || found[0] != int64(version)) {
		err = fmt.Errorf("lock the retention of job %d: %w", jobID, sql.ErrMoved)
	}
	return err
}
