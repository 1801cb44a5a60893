package trip

import (
	"slices"

	"go-crontab/job"
	"go-crontab/sql"
)

// Listed holds the search terms of a living job.
type Listed struct {
	JobID int64
	Name  string
	Terms []job.Term
}

// List writes the search terms of jobs. The caller must remove the old terms first.
func List(tx *sql.Tx, jobs []Listed) error {
	var terms, parts []any
	for i := range jobs {
		j := &jobs[i]
		for _, t := range j.Terms {
			terms = append(terms, t[:], j.JobID)
		}
		for _, p := range job.NameParts(j.Name) {
			parts = append(parts, p.Text, j.JobID, p.Pos)
		}
	}

	for part := range slices.Chunk(terms, 2*atOnce) {
		query := "INSERT INTO job_term (term, job_id) VALUES " + sql.Values(len(part)/2, 2)
		if _, err := tx.Exec("list jobs by terms", query, part...); err != nil {
			return err
		}
	}

	for part := range slices.Chunk(parts, 3*atOnce) {
		query := "INSERT INTO job_part (part, job_id, pos) VALUES " + sql.Values(len(part)/3, 3)
		if _, err := tx.Exec("list jobs by names", query, part...); err != nil {
			return err
		}
	}

	return nil
}

// Unlist removes the search terms of jobs.
func Unlist(tx *sql.Tx, jobs []int64) error {
	if len(jobs) == 0 {
		return nil
	}

	const terms = `
		DELETE t
		FROM JSON_TABLE(?, '$[*]' COLUMNS (id BIGINT PATH '$[0]')) n
		STRAIGHT_JOIN job_term t FORCE INDEX (job) ON t.job_id = n.id`
	const parts = `
		DELETE p
		FROM JSON_TABLE(?, '$[*]' COLUMNS (id BIGINT PATH '$[0]')) n
		STRAIGHT_JOIN job_part p FORCE INDEX (job) ON p.job_id = n.id`

	if _, err := tx.Exec("unlist terms of jobs", terms, singles(jobs)); err != nil {
		return err
	}

	_, err := tx.Exec("unlist names of jobs", parts, singles(jobs))
	return err
}
