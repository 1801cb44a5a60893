package read

import (
	"fmt"
	"testing"

	"go-crontab/job"
)

const live = "living = 1 AND "

// jobFilters are filters of job lists, each with its condition in SQL and the most rows that a page
// of 50 may read. Each listed job costs an index entry, a row with its app, definition and pause,
// and two runs for its status.
var jobFilters = []struct {
	name  string
	f     JobFilter
	where string
	most  int64
}{
	{"everything", JobFilter{}, "TRUE", 500},
	{"an app", JobFilter{App: "app-7"}, "app_id = 7", 500},
	{"three apps", JobFilter{Apps: []string{"app-7", "rare", "app-9"}}, "app_id IN (7, 9, 41)", 600},
	{"a group", JobFilter{Group: "narrow"}, "id MOD 91 = 2", 600},
	{"a group of an app", JobFilter{Group: "narrow", App: "app-7"}, "id MOD 91 = 2 AND app_id = 7", 600},
	{"an owner", JobFilter{Owner: "many"}, "id MOD 3 = 0", 800},
	{
		"an owner of two apps", JobFilter{Owner: "many", Apps: []string{"app-7", "rare"}},
		"id MOD 3 = 0 AND app_id IN (7, 41)", 1300,
	},
	{
		"a common and a rare label", JobFilter{Labels: map[string]string{"env": "prod", "team": "rare"}},
		"id MOD 2 = 0 AND id MOD 397 = 3", 800,
	},
	{"a part of a name", JobFilter{Name: "port-1"}, "LOCATE('port-1', name) > 0", 700},
	{
		"a part of a name in an app", JobFilter{Name: "port-1", App: "app-8"},
		"LOCATE('port-1', name) > 0 AND app_id = 8", 2200,
	},
	{"broken", JobFilter{Status: job.Broken}, "error <> ''", 500},
	{"paused", JobFilter{Status: job.Paused}, "paused = 1 AND error = ''", 600},
	{"finished", JobFilter{Status: job.Finished}, "paused = 0 AND error = '' AND next_due IS NULL", 3000},
	{"active", JobFilter{Status: job.Active}, "paused = 0 AND error = '' AND next_due = 9", 800},
	{
		"active of an owner", JobFilter{Status: job.Active, Owner: "many"},
		"paused = 0 AND error = '' AND next_due = 9 AND id MOD 3 = 0", 1000,
	},
}

// TestJobLists: each list has the jobs that match its filter, each once, and a page reads no more
// rows than it needs.
func TestJobLists(t *testing.T) {
	f := setUp(t)
	f.jobs(20_000)
	for _, c := range jobFilters {
		c.f.Limit = 50
		f.readsAtMost(c.most, c.name, func() { must(f.db.JobPage(f.Context(), c.f)) })

		seen := map[int64]bool{}
		for at := c.f; ; {
			at.Limit = 150
			p := must(f.db.JobPage(f.Context(), at))
			for _, j := range p.Rows {
				if seen[j.ID] || j.Deleted {
					f.Fatalf("%s: job %d is listed twice, or is deleted", c.name, j.ID)
				}
				seen[j.ID] = true
			}

			if p.Next == nil {
				break
			}
			at.After, at.Part = p.Next.ID, p.Next.Part
		}

		if want := f.number("SELECT COUNT(*) FROM job WHERE " + live + c.where); int64(len(seen)) != want {
			f.Errorf("%s: got %d jobs, want %d", c.name, len(seen), want)
		}
	}
}

// TestLiveJobs: a job whose schedule is over is finished once its last run has ended.
func TestLiveJobs(t *testing.T) {
	f := setUp(t)
	f.jobs(10)
	insert := func(id, jobID, due int64, state string, owner int) {
		f.exec(`
			INSERT INTO run (id, job_id, app_id, due, due_now, hash, kind, state, owner, claim)
			VALUES (?, ?, 1, ?, ?, 1, 'schedule', ?, ?, 1)`, id, jobID, due, due, state, owner)
	}

	f.exec("UPDATE job SET next_due = NULL, begun_to = 100, paused = 0, error = '', living = 1")
	insert(1, 1, 90, "ended", -2)
	insert(2, 2, 100, "executing", 1)
	insert(3, 3, 90, "ended", -2)
	insert(4, 3, 110, "prepared", 1)
	insert(5, 3, 120, "prepared", 1)
	insert(6, 4, 80, "executing", 1) // the latest run has ended, an earlier one has not
	insert(7, 4, 90, "ended", -2)
	f.exec("UPDATE job SET running = 6 WHERE id = 4")

	got := fmt.Sprint(must(f.db.LiveJobs(f.Context(), []int64{1, 2, 3, 4, 5})))
	if want := fmt.Sprint(map[int64]job.Micros{2: 0, 3: 110, 4: 0}); got != want {
		f.Errorf("got %s, want %s", got, want)
	}

	finished := must(f.db.Jobs(f.Context(), JobFilter{Status: job.Finished, Limit: 10}))
	if got := ids(finished, func(j *Job) int64 { return j.ID }); got != "1 5 6 7 8 9 10" {
		f.Errorf("finished: got jobs %s", got)
	}
}

// TestJobRow: a job shows its row, its definition and its pause.
func TestJobRow(t *testing.T) {
	f := setUp(t)
	f.jobs(20)
	f.exec(`
		INSERT INTO job_version (job_id, version, definition, created, who)
		VALUES (3, 2, ?, 50, 'bob')`, `{"app":"app-4","name":"x","command":"false"}`)
	f.exec(`
		UPDATE job
		SET version = 2, paused = 1, parked = 77, next_due = 88, begun_to = 66, changes = 4
		WHERE id = 3`)

	f.exec("INSERT INTO job_pause (job_id, since, until, who, reason) VALUES (3, 60, 88, 'ann', 'why')")

	j := must(f.db.Job(f.Context(), 3))
	times := []job.Micros{j.Parked, j.NextDue, j.LastDue, j.Created, j.Updated, j.PausedAt, j.PauseUntil}
	got := fmt.Sprint(j.Version, j.Changes, j.Spec.Command, j.Paused, times, j.PausedBy, j.PauseReason)
	if want := fmt.Sprint(2, 4, "false", true, []job.Micros{77, 88, 66, 1, 60, 60, 88}, "ann", "why"); got != want {
		f.Errorf("got %s, want %s", got, want)
	}

	versions := must(f.db.Versions(f.Context(), 3, 0, 10))
	if len(versions) != 2 || versions[0].Who != "bob" || versions[1].Version != 1 {
		f.Errorf("versions: got %+v", versions)
	}
	if apps := must(f.db.AppsOfJob(f.Context(), 3)); fmt.Sprint(apps) != "[a app-4]" {
		f.Errorf("apps of the job: got %v", apps)
	}

	f.exec("UPDATE job_version SET definition = '{' WHERE job_id = 4")
	if j := must(f.db.Job(f.Context(), 4)); j.SpecErr == nil || j.Spec.Name != "ping-4" {
		f.Errorf("unreadable definition: got error %v, name %q", j.SpecErr, j.Spec.Name)
	}
	if _, err := f.db.JobNamed(f.Context(), "app-4", "ping-4"); err == nil {
		f.Error("a job of another app was found")
	}

	named := must(f.db.JobNamed(f.Context(), "app-5", "ping-4"))
	if named.ID != 4 {
		f.Errorf("got job %d by name, want 4", named.ID)
	}
}

func TestApps(t *testing.T) {
	f := setUp(t)
	f.jobs(200)
	f.exec("INSERT INTO app (id, name) VALUES (99, 'empty')")
	apps := must(f.db.Apps(f.Context()))
	if len(apps) != 41 {
		f.Errorf("got %d apps, want 41: %v", len(apps), apps)
	}

	if must(f.db.HasJobs(f.Context(), "empty")) || !must(f.db.HasJobs(f.Context(), "rare")) ||
		must(f.db.HasJobs(f.Context(), "x")) {
		f.Error("wrong answer to whether an app has jobs")
	}

	if got, want := must(f.db.CountJobs(f.Context(), "rare")),
		f.number("SELECT COUNT(*) FROM job WHERE living = 1 AND app_id = 41"); got != want {
		f.Errorf("got %d jobs of an app, want %d", got, want)
	}

	if got, want := must(f.db.CountJobs(f.Context(), "")),
		f.number("SELECT COUNT(*) FROM job WHERE living = 1"); got != want {
		f.Errorf("got %d jobs, want %d", got, want)
	}

	if app := must(f.db.AppOfJob(f.Context(), 1)); app != "rare" {
		f.Errorf("got app %q", app)
	}
}
