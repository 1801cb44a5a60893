package node_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go-crontab/job"
	"go-crontab/sql/read"
)

// account checks the due times of interval jobs, from their first one until an instant, against
// history and ledger: each has exactly one final run, none was executed twice, and each succeeded
// one was executed.
func account(t testing.TB, c *cluster, l *ledger, jobs []job.Job, until time.Time) (outcomes map[job.Outcome]int) {
	t.Helper()
	outcomes = map[job.Outcome]int{}
	for _, j := range jobs {
		ends := map[job.Micros]*read.Run{}
		runs := c.history(j.ID)
		for i := range runs {
			r := &runs[i]
			step := time.Duration(j.Spec.Every)
			n := int64(0)
			for due := r.Due; due <= r.Until; due = due.Add(step) {
				if ends[due] != nil {
					t.Errorf("job %d due %s has two runs: %s and %s", j.ID, due, ends[due].Launch, r.Launch)
				}
				ends[due] = r
				n++
			}

			if n != r.Count {
				t.Errorf("job %d: run due %s until %s counts %d, want %d", j.ID, r.Due, r.Until, r.Count, n)
			}
		}

		for due := job.MicrosOf(*j.Spec.Start); due < job.MicrosOf(until); due = due.Add(time.Duration(j.Spec.Every)) {
			r := ends[due]
			if r == nil {
				t.Errorf("job %d due %s has no run", j.ID, due)
				continue
			}

			outcomes[r.Outcome]++
			n := l.count(j.ID, due)
			if n > 1 {
				t.Errorf("job %d due %s was executed %d times", j.ID, due, n)
			}

			if r.Outcome == job.Succeeded && n != 1 || r.Outcome == job.Skipped && n != 0 ||
				r.Outcome == job.Missed && n != 0 {
				t.Errorf("job %d due %s: %s (%s), executed %d times", j.ID, due, r.Outcome, r.Reason, n)
			}
		}
	}

	return outcomes
}

func (l *ledger) count(jobID int64, due job.Micros) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.runs[fmt.Sprintf("%d %d", jobID, int64(due))]
}

// every adds n jobs with one interval.
func (m *member) every(n int, interval time.Duration, mod func(*job.Spec)) []job.Job {
	m.t.Helper()
	jobs := make([]job.Job, n)
	for i := range jobs {
		spec := job.Spec{Name: fmt.Sprintf("every-%s-%d", interval, i), Every: job.Duration(interval)}
		if mod != nil {
			mod(&spec)
		}
		jobs[i] = m.create(spec)
	}

	return jobs
}

// settled waits until no due time before an instant is live.
func (c *cluster) settled(limit time.Duration, until time.Time) {
	c.t.Helper()
	await(c.t, "all due times ended", limit, func() bool {
		return c.count("SELECT COUNT(*) FROM run WHERE state <> 'ended' AND due < ?", until.UnixMicro()) == 0
	})
}

// everySecond adds n jobs that are due every second, spread evenly over a part of the second.
func (c *cluster) everySecond(n int, first time.Time, spread time.Duration) []job.Job {
	c.t.Helper()
	specs := make([]job.Spec, n)
	for i := range specs {
		start := first.Add(spread * time.Duration(i) / time.Duration(n)).Truncate(time.Microsecond)
		specs[i] = job.Spec{Name: fmt.Sprint("job-", i), Every: job.Duration(time.Second), Start: &start}
	}
	return c.insert(specs...)
}

// insert adds jobs without a node: their cursors wait for a claim. They need a start.
func (c *cluster) insert(specs ...job.Spec) []job.Job {
	c.t.Helper()
	jobs := make([]job.Job, len(specs))
	for i, spec := range specs {
		if spec.Command == "" && spec.HTTP == nil && spec.Handler == "" {
			spec.Command = "true"
		}
		spec.Defaults(*spec.Start)
		jobs[i] = job.Job{Spec: spec, Version: 1, Changes: 1, Hash: job.HashOf(spec.App, spec.Name)}
	}

	for part := range slices.Chunk(jobs, 1000) {
		c.insertPart(part)
	}

	return jobs
}

// insertPart inserts some jobs in one transaction: a claim that found a job without its definition
// would mark it broken.
func (c *cluster) insertPart(jobs []job.Job) {
	c.t.Helper()
	var rows, versions []string
	var values, definitions []any
	for _, j := range jobs {
		c.exec("INSERT IGNORE INTO app (name) VALUES (?)", j.Spec.App)
		rows = append(rows, "((SELECT id FROM app WHERE name = ?), ?, ?, ?)")
		values = append(values, j.Spec.App, j.Spec.Name, j.Hash, j.Spec.Start.UnixMicro())
	}

	tx, err := c.db.Raw().Begin()
	if err != nil {
		c.t.Fatal(err)
	}
	defer tx.Rollback()

	if _, err := tx.Exec(`
		INSERT INTO job (app_id, name, hash, next_due)
		VALUES `+strings.Join(rows, ","), values...); err != nil {
		c.t.Fatal(err)
	}

	for i := range jobs {
		spec := &jobs[i].Spec
		q := "SELECT j.id FROM job j JOIN app a ON a.id = j.app_id WHERE a.name = ? AND j.name = ? AND j.living = 1"
		if err := tx.QueryRow(q, spec.App, spec.Name).Scan(&jobs[i].ID); err != nil {
			c.t.Fatal(err)
		}

		text, err := spec.Encode()
		if err != nil {
			c.t.Fatal(err)
		}

		versions = append(versions, "(?, 1, ?, ?)")
		definitions = append(definitions, jobs[i].ID, text, spec.Start.UnixMicro())
	}

	if _, err := tx.Exec(`
		INSERT INTO job_version (job_id, version, definition, created)
		VALUES `+strings.Join(versions, ","), definitions...); err != nil {
		c.t.Fatal(err)
	}

	if err := tx.Commit(); err != nil {
		c.t.Fatal(err)
	}
}
