package schedule

import (
	"fmt"
	"testing"
	"time"

	"go-crontab/job"
	"go-crontab/sql"
)

func TestZZScale(t *testing.T) {
	f := setUp(t)
	short := f.beside
	f.beside = open(t, f.dsn, sql.MigrateTimeouts)
	f.exec("INSERT INTO job (id, app, name, hash, spec, next_due, created, updated) SELECT seq, 'default', CONCAT('j', seq), seq % 1024, '{}', ? + seq, 1, 1 FROM seq_1_to_300000", int64(after(time.Hour)))
	// 200k idle ahead, one group with 10,000 waiting and 50 executing, job 1 with 1000 waiting and one executing, job 2 with 1000 waiting none executing,
	// 2000 jobs with head in group and one behind
	f.exec("INSERT INTO task (job_id, due, due_now, hash, state) SELECT seq, ?+seq, ?+seq, seq%1024, 0 FROM seq_20001_to_220000", int64(after(0)), int64(after(0)))
	f.exec("INSERT INTO task (job_id, due, due_now, hash, state) SELECT 100+seq, ?+seq, ?+seq, seq%1024, 3 FROM seq_1_to_10000", int64(after(-time.Minute)), int64(after(-time.Minute)))
	f.exec("INSERT INTO waiting (task_id, kind, job_id, group_id, turn, due, since, expires) SELECT id, 2, job_id, 1, job_id % 5, due, due, 9223372036854775807 FROM task WHERE state = 3")
	f.exec("INSERT INTO task (job_id, due, due_now, hash, state) SELECT 100+seq, ?+1, ?+seq, seq%1024, 3 FROM seq_1_to_2000", int64(after(-50*time.Second)), int64(after(-50*time.Second)))
	f.exec("INSERT INTO task (job_id, due, due_now, hash, state) SELECT 1, ?+seq, ?+seq, 1, 3 FROM seq_1_to_1000", int64(after(-time.Minute)), int64(after(-time.Minute)))
	f.exec("INSERT INTO task (job_id, due, due_now, hash, state) SELECT 2, ?+seq, ?+seq, 1, 3 FROM seq_1_to_1000", int64(after(-time.Minute)), int64(after(-time.Minute)))
	f.exec("INSERT INTO waiting (task_id, kind, job_id, group_id, turn, due, since, expires) SELECT id, 1, job_id, 0, 0, due, due, 9223372036854775807 FROM task t WHERE state = 3 AND NOT EXISTS (SELECT 1 FROM waiting w WHERE w.task_id = t.id)")
	f.exec("INSERT INTO task (job_id, due, due_now, hash, state, session_id, launch) SELECT 1, ?, ?, 1, 2, REPEAT('x', 16), 1", int64(after(-time.Hour)), int64(after(-time.Hour)))
	f.exec("INSERT INTO task (job_id, due, due_now, hash, state, session_id, launch) SELECT 50000+seq, ?, ?, 1, 2, REPEAT('x', 16), seq+1 FROM seq_1_to_50", int64(after(-time.Hour)), int64(after(-time.Hour)))
	f.exec("INSERT INTO grp (id, name, slots, created, updated) VALUES (1, 'g', 50, 1, 1)")
	f.exec("INSERT INTO grp (name, slots, created, updated) SELECT CONCAT('h', seq), 50, 1, 1 FROM seq_1_to_100")
	f.exec("INSERT INTO slot (task_id, group_id) SELECT id, 1 FROM task WHERE state = 2 AND job_id > 50000")
	f.exec("INSERT INTO backfill (id, job_id, first, last, next_due, parallel, total, planned, missing, left_out, state, who, created, updated) SELECT seq, seq, ?, ?, ?, 5, 1000, 1, 0, 0, 0, '', 1, 1 FROM seq_1_to_1000", int64(after(-time.Hour*10000)), int64(after(-time.Hour)), int64(after(-time.Hour*500)))
	db := short
	for _, tbl := range []string{"task", "waiting", "slot", "grp", "job", "backfill"} {
		f.exec("ANALYZE TABLE " + tbl)
	}
	ctx := t.Context()
	run := func(name string, fn func() (int, error)) {
		for range 2 {
			at := time.Now()
			n, err := fn()
			t.Logf("ZZ %-30s %6d rows %8s %v", name, n, time.Since(at).Round(10*time.Microsecond), err)
		}
	}
	now := f.session.Now()
	run("StuckJobs 0", func() (int, error) { l, err := db.StuckJobs(ctx, 0, 200); return len(l), err })
	run("StuckJobs 2000", func() (int, error) { l, err := db.StuckJobs(ctx, 2000, 200); return len(l), err })
	run("StuckGroups", func() (int, error) { l, err := db.StuckGroups(ctx); return len(l), err })
	run("Glance", func() (int, error) { _, err := db.Glance(ctx); return 1, err })
	run("ExpiredWaits", func() (int, error) { l, err := db.ExpiredWaits(ctx, now, 200); return len(l), err })
	run("AwaitedPlaces", func() (int, error) { l, err := db.AwaitedPlaces(ctx); return len(l), err })
	run("Sweep", func() (int, error) { return 0, db.Sweep(ctx, now) })
	run("HungryBackfills", func() (int, error) { l, err := db.HungryBackfills(ctx, 0, 100); return len(l), err })
	run("CountIdle", func() (int, error) { return db.CountIdle(ctx, now.Add(planWindow), tasksPerBucket*sql.MaxBuckets) })
	run("Owners", func() (int, error) { l, err := db.Owners(ctx); return len(l), err })
	run("lock group", func() (n int, err error) {
		err = db.Tx(ctx, func(tx *sql.Tx) error { g, err := tx.LockGroups([]string{"g"}); n = len(g); return err })
		return
	})
	run("SlotHolders", func() (n int, err error) {
		err = db.Tx(ctx, func(tx *sql.Tx) error { g, err := tx.SlotHolders([]int64{1}); n = len(g[1]); return err })
		return
	})
	run("WakeJobs 1", func() (n int, err error) {
		err = db.Tx(ctx, func(tx *sql.Tx) error { n, err = tx.WakeJobs([]int64{1}, now); return err })
		return
	})
	run("WakeJobs 2", func() (n int, err error) {
		err = db.Tx(ctx, func(tx *sql.Tx) error { n, err = tx.WakeJobs([]int64{2}, now); return err })
		return
	})
	run("WakeGroups", func() (n int, err error) {
		err = db.Tx(ctx, func(tx *sql.Tx) error {
			g, err := tx.LockGroupIDs([]int64{1})
			if err != nil {
				return err
			}
			g[0].Slots += 1
			n, err = tx.WakeGroups(g, now)
			return err
		})
		return
	})
	run("Waiting", func() (int, error) { l, err := db.Waiting(ctx, []int64{1, 2}, 100); return len(l), err })
	run("Groups", func() (int, error) { l, err := db.Groups(ctx, "", 0, 100); return len(l), err })
	run("Siblings", func() (n int, err error) {
		err = db.Tx(ctx, func(tx *sql.Tx) error {
			g, err := tx.Siblings([]int64{1}, []int64{1}, now)
			n = len(g[1])
			return err
		})
		return
	})
	_ = job.Idle
	fmt.Sprint()
	s := f.sweeper()
	run("sweep", func() (int, error) { return 0, s.sweep(ctx, now) })
	run("sweep", func() (int, error) { return 0, s.sweep(ctx, now) })
}
