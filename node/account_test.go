package node_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go-crontab/job"
	"go-crontab/sql"
)

// account holds the due times of every-interval jobs, from their first one until an instant, against history and
// ledger: each has exactly one final run, none was executed twice, and what succeeded was executed.
func account(t testing.TB, c *cluster, l *ledger, jobs []job.Job, until time.Time) (outcomes map[job.Outcome]int) {
	t.Helper()
	outcomes = map[job.Outcome]int{}
	for _, j := range jobs {
		ends := map[job.Micros]*sql.RunRow{}
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
			if r.Outcome == job.Succeeded && n != 1 || r.Outcome == job.Skipped && n != 0 || r.Outcome == job.Missed && n != 0 {
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

// every adds n jobs of one interval.
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

// settled waits until no due time before an instant is still live.
func (c *cluster) settled(limit time.Duration, until time.Time) {
	c.t.Helper()
	await(c.t, "all due times ended", limit, func() bool {
		return c.count("SELECT COUNT(*) FROM task WHERE due < ?", until.UnixMicro()) == 0
	})
}

// everySecond adds n jobs that are due every second, spread evenly over a part of it.
func (c *cluster) everySecond(n int, first time.Time, spread time.Duration) []job.Job {
	c.t.Helper()
	specs := make([]job.Spec, n)
	for i := range specs {
		start := first.Add(spread * time.Duration(i) / time.Duration(n)).Truncate(time.Microsecond)
		specs[i] = job.Spec{Name: fmt.Sprint("job-", i), Every: job.Duration(time.Second), Start: &start}
	}
	return c.insert(specs...)
}

// insert adds jobs without a node and without planning them: that is left to the planners. They need a start.
func (c *cluster) insert(specs ...job.Spec) []job.Job {
	c.t.Helper()
	jobs := make([]job.Job, len(specs))
	for i, spec := range specs {
		if spec.Command == "" && spec.HTTP == nil && spec.Handler == "" {
			spec.Command = "true"
		}
		spec.Defaults(*spec.Start)
		jobs[i] = job.Job{Spec: spec}
	}
	for part := range slices.Chunk(jobs, 1000) {
		var rows []string
		var args []any
		for _, j := range part {
			text, err := j.Spec.Encode()
			if err != nil {
				c.t.Fatal(err)
			}
			rows = append(rows, "(?,?,?,?,?,1,1)")
			args = append(args, j.Spec.App, j.Spec.Name, job.HashOf(j.Spec.App, j.Spec.Name), text, j.Spec.Start.UnixMicro())
		}
		r, err := c.db.Raw().Exec("INSERT INTO job (app, name, hash, spec, next_due, created, updated) VALUES "+strings.Join(rows, ","), args...)
		if err != nil {
			c.t.Fatal(err)
		}
		id, _ := r.LastInsertId() // of the first row; a simple insert takes consecutive ones
		for i := range part {
			part[i].ID = id + int64(i)
		}
	}
	return jobs
}
