// Package listdata fills a schema with many jobs and runs, for tests and benchmarks of lists. What is rare in them is
// spread evenly, so that nobody meets it by reading from either end.
package listdata

import "go-crontab/job"

// Epoch is when the first run was due; the others follow 1 ms apart.
const Epoch = 1_700_000_000_000_000

// session is the one in which all runs were.
var session = make([]byte, 16)

// Filler writes by a function that executes one statement, and fails the test if it cannot.
type Filler struct {
	Exec func(query string, args ...any)
	Spec string // of all jobs
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

// Jobs makes so many: one in 977 of app rare, the others of 400 apps.
func (f Filler) Jobs(jobs int) {
	f.numbers(jobs)
	f.Exec(`INSERT INTO job (id, app, name, hash, spec, next_due, paused, error, finished, living, created, updated, listed)
		SELECT n, IF(n MOD 977 = 1, 'rare', CONCAT('app-', n MOD 400)), CONCAT(ELT(1 + n MOD 5, 'nightly', 'backup', 'report', 'sync', 'ping'), '-', n), 7, ?,
			IF(n MOD 1009 = 5 OR n MOD 1013 = 6 OR n MOD 1019 = 7 OR n MOD 2003 = 8, NULL, 9), n MOD 1009 = 5, IF(n MOD 1013 = 6, 'x', ''), n MOD 1019 = 7,
			IF(n MOD 50 = 49, NULL, 1), 1, 1, 1
		FROM num WHERE n <= ?`, f.Spec, jobs)
	// One in 2003 is at its end, and some of these have a task.
	f.Exec("INSERT INTO task (job_id, due, due_now, hash) SELECT id, 9, 9, 7 FROM job WHERE id MOD 4006 = 8")
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
			f.Exec("INSERT INTO job_term (term, job_id) SELECT ?, id FROM job WHERE living = 1 AND "+x.where+" AND (? = '' OR app = ?)", term[:], app, app)
		}
	}
	f.Exec("ALTER TABLE job_part DROP KEY job") // it is made at once below, which is quicker
	f.Exec("INSERT INTO job_part (part, job_id, pos) SELECT SUBSTRING(name, n), id, n - 1 FROM job JOIN num ON n <= CHAR_LENGTH(name) WHERE n <= 16 AND living = 1 ORDER BY 1, 2, 3")
	f.Exec("ALTER TABLE job_part ADD KEY job (job_id)")
	f.Exec("ANALYZE TABLE job, job_term, job_part")
}

// Runs makes so many, a fifth of them of job 2, the others of all. One in 50 was skipped, two in 4,999 have failed, one in
// 5,003 was asked for, one in 5,009 was on another node.
func (f Filler) Runs(jobs, runs int) {
	f.numbers(runs)
	f.Exec("ALTER TABLE history DROP KEY by_outcome, DROP KEY by_app, DROP KEY by_node")
	f.Exec(`INSERT INTO history (id, job_id, due, origin, session_id, launch, outcome, due_last, ended, node, trig)
		SELECT n, IF(n MOD 5 = 0, 2, 1 + n * 7 MOD ?), ? + n * 1000, IF(n MOD 5003 = 1, n, 0), ?, n, IF(n MOD 4999 IN (1, 1000), 2, IF(n MOD 50 = 7, 6, 1)), 0, 0,
			IF(n MOD 5009 = 1, 'elsewhere', CONCAT('node-', n MOD 3)), n MOD 5003 = 1
		FROM num WHERE n <= ?`, jobs, Epoch, session, runs)
	f.Exec("UPDATE history h STRAIGHT_JOIN job j ON j.id = h.job_id SET h.app = CRC32(j.app)")
	f.Exec("ALTER TABLE history ADD KEY by_outcome (outcome, trig, due, id), ADD KEY by_app (app, outcome, trig, due, id), ADD KEY by_node (node, outcome, trig, due, id)")
	f.Exec("INSERT INTO notable (job_id, outcome, trig, due, id) SELECT job_id, outcome, trig, due, id FROM history WHERE outcome <> 1 OR trig <> 0")
	f.Exec("ANALYZE TABLE history, notable")
}
