// Package listdata fills a schema with many jobs and runs, for tests and benchmarks of lists. What is rare in them is
// spread evenly, so that nobody meets it by reading from either end.
package listdata

import "go-crontab/job"

// Epoch is when the first run was due; the others follow 1 ms apart.
const Epoch = 1_700_000_000_000_000

// Filler writes by a function that executes one statement, and fails the test if it cannot.
type Filler struct {
	Exec func(query string, args ...any)
	Spec string // of all jobs, without their names
}

// numbers fills table num with numbers from 1.
func (f Filler) numbers(most int) {
	f.Exec("CREATE TABLE IF NOT EXISTS num (n INT PRIMARY KEY) ENGINE=InnoDB")
	f.Exec("TRUNCATE TABLE num")
	f.Exec("INSERT INTO num VALUES (1)")
	for n := 1; n < most; n *= 2 {
		f.Exec("INSERT INTO num SELECT n + ? FROM num WHERE n <= ?", n, min(n, most-n))
	}
}

// apps is how many apps there are beside app rare, which has number 1.
const apps = 400

// Jobs makes so many: one in 977 of app rare, the others of 400 apps.
func (f Filler) Jobs(jobs int) {
	f.numbers(max(jobs, apps))
	f.Exec("INSERT INTO app (id, name) VALUES (1, 'rare')")
	f.Exec("INSERT INTO app (id, name) SELECT n + 1, CONCAT('app-', n - 1) FROM num WHERE n <= ?", apps)
	f.Exec(`
		INSERT INTO job (id, app_id, name, hash, next_due, paused, error, living)
		SELECT n, IF(n MOD 977 = 1, 1, 2 + n MOD ?), CONCAT(ELT(1 + n MOD 5, 'nightly', 'backup', 'report', 'sync', 'ping'), '-', n), 7,
			IF(n MOD 1009 = 5 OR n MOD 1013 = 6 OR n MOD 1019 = 7 OR n MOD 2003 = 8, NULL, 9),
			n MOD 1009 = 5, IF(n MOD 1013 = 6, 'x', ''), IF(n MOD 50 = 49, NULL, 1)
		FROM num
		WHERE n <= ?`, apps, jobs)
	f.Exec(`
		INSERT INTO job_version (job_id, version, definition, created)
		SELECT j.id, 1, JSON_SET(?, '$.app', a.name, '$.name', j.name), 1
		FROM job j
		JOIN app a ON a.id = j.app_id`, f.Spec)
	f.Exec("INSERT INTO job_pause (job_id, since, who) SELECT id, 1, 'somebody' FROM job WHERE paused = 1")
	// One in 2003 is at its end, and some of these have a run that has not begun.
	f.Exec(`
		INSERT INTO run (id, job_id, app_id, due, kind, state, owner, claim, due_now, hash)
		SELECT (1 << 40) + id, id, app_id, 9, 'schedule', 'idle', 0, 0, 9, 7
		FROM job
		WHERE id MOD 4006 = 8`)

	for _, x := range []struct {
		where string
		in    func(app string) job.Term
	}{
		{"id MOD 2 = 0", func(app string) job.Term { return job.LabelTerm(app, "env", "prod") }},
		{"id MOD 997 = 3", func(app string) job.Term { return job.LabelTerm(app, "team", "rare") }},
		{"id MOD 3 = 0", func(app string) job.Term { return job.OwnerTerm(app, "many") }},
		{"id MOD 991 = 4", func(app string) job.Term { return job.OwnerTerm(app, "few") }},
		{"id MOD 983 = 2", func(app string) job.Term { return job.GroupTerm(app, "narrow") }},
		{"id MOD 971 = 1", func(app string) job.Term { return job.CalendarTerm(app, "holidays") }},
	} {
		for _, app := range []string{"", "app-7", "rare"} {
			term := x.in(app)
			f.Exec(`
				INSERT INTO job_term (term, job_id)
				SELECT ?, id
				FROM job
				WHERE living = 1 AND `+x.where+` AND (? = '' OR app_id = (SELECT a.id FROM app a WHERE a.name = ?))`, term[:], app, app)
		}
	}
	f.Exec("ALTER TABLE job_part DROP KEY job") // it is made at once below, which is quicker
	f.Exec(`
		INSERT INTO job_part (part, job_id, pos)
		SELECT SUBSTRING(name, n), id, n - 1
		FROM job
		JOIN num ON n <= CHAR_LENGTH(name)
		WHERE n <= 16 AND living = 1
		ORDER BY 1, 2, 3`)
	f.Exec("ALTER TABLE job_part ADD KEY job (job_id)")
	f.Exec("ANALYZE TABLE job, job_term, job_part")
}

// Runs makes so many that have ended, a fifth of them of job 2, the others of all. One in 50 was skipped, two in 4,999 have failed, one
// in 5,003 was asked for, one in 5,009 was on another node.
func (f Filler) Runs(jobs, runs int) {
	f.numbers(runs)
	f.Exec(`
		INSERT INTO life (id, session, node, started)
		VALUES (1, REPEAT('0', 16), 'node-0', 1), (2, REPEAT('1', 16), 'node-1', 1), (3, REPEAT('2', 16), 'node-2', 1),
			(4, REPEAT('3', 16), 'elsewhere', 1)`)
	f.Exec("ALTER TABLE run DROP KEY live, DROP KEY by_app")
	f.Exec(`
		INSERT INTO run (id, job_id, app_id, due, due_now, kind, request, state, owner, claim, hash, session, outcome, final)
		SELECT n, j.id, j.app_id, ? + n * 1000, ? + n * 1000, IF(n MOD 5003 = 1, 'manual', 'schedule'), IF(n MOD 5003 = 1, n, 0), 'ended', -2, 1, 7,
			IF(n MOD 5009 = 1, 4, 1 + n MOD 3), IF(n MOD 4999 IN (1, 1000), 'failed', IF(n MOD 50 = 7, 'skipped', 'succeeded')), 1
		FROM num
		STRAIGHT_JOIN job j ON j.id = IF(n MOD 5 = 0, 2, 1 + n * 7 MOD ?)
		WHERE n <= ?`, Epoch, Epoch, jobs, runs)
	f.Exec("ALTER TABLE run ADD KEY live (owner, due_now, hash), ADD KEY by_app (app_id, due)")
	f.Exec("INSERT INTO notable (outcome, due, run_id, app_id, job_id) SELECT outcome, due, id, app_id, job_id FROM run WHERE state = 'ended' AND outcome <> 'succeeded'")
	f.Exec("ANALYZE TABLE run, notable")
}
