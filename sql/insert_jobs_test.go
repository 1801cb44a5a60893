package sql

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"go-crontab/job"
)

// TestInsertJobs: jobs that are written together leave the rows that they leave one by one, whatever their number and size;
// or none, if one of them is there.
func TestInsertJobs(t *testing.T) {
	f := setUp(t)
	at := time.UnixMicro(5_000_000).UTC()
	batch := func(app string, n, filler int) (jobs []*job.Job, specs []string) {
		for i := range n {
			s := job.Spec{App: app, Name: fmt.Sprintf("job-%d", i), At: &at, Command: strings.Repeat("#", filler), Owner: "ann"}
			s.Defaults(at)
			text, err := s.Encode()
			if err != nil {
				t.Fatal(err)
			}
			j := &job.Job{Spec: s, Version: 1, Hash: i, NextDue: 5_000_000, Created: 1, Updated: 2}
			if i%3 == 0 {
				j.NextDue, j.Paused, j.PausedBy = 0, true, "ann"
			}
			jobs, specs = append(jobs, j), append(specs, text)
		}
		return jobs, specs
	}
	jobs, specs := batch("together", 450, 10)
	more, moreSpecs := batch("large", 5, maxSpecBytes/3)
	f.tx(func(tx *Tx) error { return tx.InsertJobs(append(jobs, more...), append(specs, moreSpecs...)) })
	alone, aloneSpecs := batch("alone", 450, 10)
	f.tx(func(tx *Tx) error {
		for i, j := range alone {
			if _, err := tx.InsertJob(j, aloneSpecs[i]); err != nil {
				return err
			}
		}
		return nil
	})
	for _, what := range []string{
		"job j ON j.name = o.name AND j.hash = o.hash AND j.next_due <=> o.next_due AND j.paused = o.paused AND j.paused_by = o.paused_by AND j.listed = 1",
		"job j ON j.name = o.name JOIN job_version v ON v.job_id = j.id AND v.spec = j.spec AND v.version = 1 AND v.at = 2",
	} {
		f.want("rows as those written one by one", 450, "SELECT COUNT(*) FROM job o JOIN "+what+" WHERE o.app = 'alone' AND j.app = 'together'")
	}
	for _, table := range []string{"job_term", "job_part"} {
		count := "SELECT COUNT(*) FROM " + table + " l JOIN job j ON j.id = l.job_id WHERE j.app = ?"
		f.want("rows of "+table, f.number(count, "alone"), count, "together")
	}
	f.want("large jobs", 5, "SELECT COUNT(*) FROM job WHERE app = 'large'")
	for _, j := range append(jobs, more...) {
		if j.ID == 0 {
			t.Fatalf("%s has no id", j.Spec.Name)
		}
	}
	f.want("id of one", jobs[17].ID, "SELECT id FROM job WHERE app = 'together' AND name = 'job-17'")

	again, againSpecs := batch("again", 3, 1)
	again[1].Spec.App = "together"
	f.refused("one is there", ErrExists, func(tx *Tx) error { return tx.InsertJobs(again, againSpecs) })
	f.want("the others", 0, "SELECT COUNT(*) FROM job WHERE app = 'again'")
	f.tx(func(tx *Tx) error { return tx.InsertJobs(nil, nil) })
}
