// Package listdata fills a schema with many jobs and runs, for tests and benchmarks of lists. Rare
// rows are spread evenly, so a reader from either end does not meet them early.
package listdata

import "go-crontab/job"

// Epoch is the due time of the first run, in microseconds of Unix time. The others follow 1 ms
// apart.
const Epoch = 1_700_000_000_000_000

// Filler writes through Exec, which executes a statement and fails the test if it cannot.
type Filler struct {
	Exec func(query string, args ...any)
	Spec string // the definition of all jobs, without app and name
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

// apps is the number of apps. The last is rare.
const apps = 401

// Jobs makes this many jobs: 1 in 977 in app rare, the others in 400 apps.
func (f Filler) Jobs(jobs int) {
	f.numbers(max(jobs, apps))
	f.Exec("INSERT INTO app (id, name) SELECT n, IF(n = ?, 'rare', CONCAT('app-', n MOD ?)) FROM num WHERE n <= ?",
		apps, apps-1, apps)

	f.Exec(`
		INSERT INTO job (id, app_id, name, hash, next_due, paused, error, living)
		SELECT n, IF(n MOD 977 = 1, ?, IF(n MOD 400 = 0, 400, n MOD 400)),
			CONCAT(ELT(1 + n MOD 5, 'nightly', 'backup', 'report', 'sync', 'ping'), '-', n), n MOD 1024,
			IF(n MOD 1009 = 5 OR n MOD 1013 = 6 OR n MOD 1019 = 7 OR n MOD 2003 = 8, NULL, 9),
			n MOD 1009 = 5, IF(n MOD 1013 = 6, 'x', ''),
			IF(n MOD 50 = 49, NULL, 1)
		FROM num
		WHERE n <= ?`, apps, jobs)

	f.Exec("INSERT INTO job_pause (job_id, since, who) SELECT id, 1, 'ann' FROM job WHERE paused = 1")

	f.Exec(`
		INSERT INTO job_version (job_id, version, definition, created)
		SELECT j.id, 1, JSON_INSERT(?, '$.app', a.name, '$.name', j.name), 1
		FROM job j
		JOIN app a ON a.id = j.app_id`, f.Spec)

	for _, x := range []struct {
		where string
		in    func(app string) job.Term
	}{
		{"j.id MOD 2 = 0", func(app string) job.Term { return job.LabelTerm(app, "env", "prod") }},
		{"j.id MOD 997 = 3", func(app string) job.Term { return job.LabelTerm(app, "team", "rare") }},
		{"j.id MOD 3 = 0", func(app string) job.Term { return job.OwnerTerm(app, "many") }},
		{"j.id MOD 991 = 4", func(app string) job.Term { return job.OwnerTerm(app, "few") }},
		{"j.id MOD 983 = 2", func(app string) job.Term { return job.GroupTerm(app, "narrow") }},
		{"j.id MOD 971 = 1", func(app string) job.Term { return job.CalendarTerm(app, "holidays") }},
	} {
		for _, app := range []string{"", "app-7", "rare"} {
			term := x.in(app)
			f.Exec(`
				INSERT INTO job_term (term, job_id)
				SELECT ?, j.id
				FROM job j
				JOIN app a ON a.id = j.app_id
				WHERE j.living = 1 AND `+x.where+` AND (? = '' OR a.name = ?)`, term[:], app, app)
		}
	}

	f.Exec("ALTER TABLE job_part DROP KEY job") // rebuilt below, which is faster

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

// Runs makes this many runs, a fifth for job 2, the others for all jobs. 1 in 50 was skipped, 2 in
// 4,999 failed, 1 in 5,003 was manual, 1 in 5,009 was on another node.
func (f Filler) Runs(jobs, runs int) {
	f.numbers(runs)
	f.Exec(`
		INSERT INTO life (id, session, node, started)
		SELECT n, UNHEX(LPAD(HEX(n), 32, '0')), IF(n = 4, 'elsewhere', CONCAT('node-', n MOD 3)), 1
		FROM num
		WHERE n <= 4`)

	f.Exec("ALTER TABLE run DROP KEY live, DROP KEY by_app")
	f.Exec(`
		INSERT INTO run (id, job_id, app_id, due, due_now, hash, kind, request, state, owner, claim, session,
			started, ended, outcome, final)
		SELECT n, IF(n MOD 5 = 0, 2, 1 + n * 7 MOD ?), 0, ? + n * 1000, ? + n * 1000, n MOD 1024,
			IF(n MOD 5003 = 1, 'manual', 'schedule'), IF(n MOD 5003 = 1, n, 0),
			'ended', -2, 1, IF(n MOD 5009 = 1, 4, 1 + n MOD 3), ? + n * 1000, ? + n * 1000 + 500,
			IF(n MOD 4999 IN (1, 1000), 'failed', IF(n MOD 50 = 7, 'skipped', 'succeeded')), 1
		FROM num
		WHERE n <= ?`, jobs, Epoch, Epoch, Epoch, Epoch, runs)
	f.Exec("UPDATE run r STRAIGHT_JOIN job j ON j.id = r.job_id SET r.app_id = j.app_id")
	f.Exec("ALTER TABLE run ADD KEY live (owner, due_now, hash), ADD KEY by_app (app_id, due)")

	f.Exec(`
		INSERT INTO notable (outcome, due, run_id, app_id, job_id)
		SELECT outcome, due, id, app_id, job_id
		FROM run
		WHERE outcome <> 'succeeded'`)
	f.Exec("ANALYZE TABLE run, notable")
}
