package schedule

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"go-crontab/job"
)

// acceptRestore has the database be one that was restored at an instant by the test's clock, and jobs be older than that.
func (f *fixture) acceptRestore(at job.Micros) {
	f.Helper()
	if err := f.beside.AcceptRestore(f.Context()); err != nil {
		f.Fatal(err)
	}
	f.exec("UPDATE setting SET value = ? WHERE name = 'restored'", fmt.Sprint(int64(at)))
	f.exec("UPDATE pause SET since = ? WHERE app = ''", int64(at))
	f.session.set(at)
}

func restoredText(at job.Micros) string {
	return fmt.Sprintf("due before the database was restored at %s: whether it ran nobody knows; see docs/backup.md", at)
}

// startedBefore lists, in seconds after t0, what was started that was due before an instant.
func (f *fixture) startedBefore(at job.Micros) (out []float64) {
	for _, s := range f.executing.added {
		if s.Due < at {
			out = append(out, s.Due.Sub(t0).Seconds())
		}
	}
	return out
}

// TestRestoreInAPause: the backup has a pause of the job, or of its app, that ended between the backup and the restore. The last
// due time of before the restore is not caught up when the cluster is resumed.
func TestRestoreInAPause(t *testing.T) {
	f := setUp(t)
	for name, pause := range map[string]func(f *fixture, j job.Job, until job.Micros){
		"of the job": func(f *fixture, j job.Job, until job.Micros) { f.pauseJob(j, until) },
		"of its app": func(f *fixture, j job.Job, until job.Micros) { f.pauseApp("a", "why", until); f.look(f.session.Now()) },
	} {
		t.Run(name, func(t *testing.T) {
			f := f.anew(t)
			j := f.create(in("a", every("hourly", time.Hour, time.Hour)))
			pause(f, j, after(30*time.Minute))
			restored := after(130 * time.Minute) // one and two hours after t0 it ran, which is not known any more
			f.acceptRestore(restored)
			f.reach(restored.Add(time.Second))
			f.reach(restored.Add(3 * time.Second))
			f.session.set(after(140 * time.Minute))
			f.resumeApp("")
			for _, at := range []time.Duration{140*time.Minute + time.Second, 140*time.Minute + 2*time.Second, 141 * time.Minute, 3 * time.Hour} {
				f.reach(after(at))
			}
			if got := f.startedBefore(restored); got != nil {
				t.Errorf("what was due %v s after t0 was started again", got)
			}
			if len(f.executing.added) != 1 || f.executing.added[0].Due != after(3*time.Hour) {
				t.Errorf("got %+v, want the due time after the restore alone", f.executing.added)
			}
			f.want("due times that are counted as skipped", 2, "SELECT SUM(due_count) FROM history WHERE job_id = ? AND outcome = ?", j.ID, job.Skipped)
		})
	}
}

// TestRestoreResumedAtOnce: the cluster is resumed before the planner has held anything. What was planned at the backup, and
// what has become due since, is not started.
func TestRestoreResumedAtOnce(t *testing.T) {
	f := setUp(t)
	var ids []int64
	for _, p := range []job.MisfirePolicy{job.MisfireLatest, job.MisfireSkip, job.MisfireAll} {
		spec := in("a", every("j "+string(p), 10*time.Second, 10*time.Second))
		spec.Misfire.Policy = p
		ids = append(ids, f.create(spec).ID) // planned up to 40 s
	}
	single := f.create(in("a", at("single", after(time.Minute))))
	restored := after(105 * time.Second)
	f.acceptRestore(restored)
	f.resumeApp("")
	young := f.create(in("a", at("young", after(100*time.Second)))) // made after the restore: somebody wants it
	f.exec("UPDATE job SET created = ? WHERE id = ?", int64(restored), young.ID)
	for _, at := range []time.Duration{106 * time.Second, 107 * time.Second, 110 * time.Second} {
		f.reach(after(at))
	}
	var old []float64
	for _, s := range f.executing.added {
		if s.Due < restored && s.JobID != young.ID {
			old = append(old, s.Due.Sub(t0).Seconds())
		}
	}
	if old != nil {
		t.Errorf("what was due %v s after t0 was started again", old)
	}
	if n := len(f.executing.added); n != len(ids)+1 {
		t.Errorf("%d attempts were started, want one of each job that is due often, and the one that is younger", n)
	}
	for _, id := range ids {
		var want []string
		for due := 10; due <= 40; due += 10 {
			want = append(want, fmt.Sprintf("skipped %d..%d×1 %s", due, due, restoredText(restored)))
		}
		f.wantRuns("due often", id, append(want, "skipped 50..100×6 "+restoredText(restored))...)
	}
	f.wantRuns("due once", single.ID, "skipped 60..60×1 "+restoredText(restored))
}

// TestRestoreAheadOfTheClock: MySQL's clock was put back since the restore. What is due by it starts, and nothing ends before it is due.
func TestRestoreAheadOfTheClock(t *testing.T) {
	f := setUp(t)
	spec := every("j", 10*time.Second, 10*time.Second)
	spec.Overlap = job.OverlapAllow
	j := f.create(spec) // planned up to 40 s
	f.acceptRestore(after(time.Hour))
	f.session.set(after(0))
	f.resumeApp("")
	var want []float64
	for due := 10; due <= 60; due += 10 {
		f.reach(after(time.Duration(due) * time.Second))
		want = append(want, float64(due))
	}
	if got := f.startedBefore(after(time.Hour)); !slices.Equal(got, want) {
		t.Errorf("what was due %v s after t0 was started, want %v", got, want)
	}
	f.want("due times that ended without a start", 0, "SELECT COUNT(*) FROM history WHERE job_id = ? AND outcome = ?", j.ID, job.Skipped)
}

// TestRestoreLongAgo: what was due before a restore and what nobody could start after it is told apart by the record.
func TestRestoreLongAgo(t *testing.T) {
	f := setUp(t)
	j := f.create(every("j", time.Minute, time.Minute))
	restored := after(150 * time.Second)
	f.acceptRestore(restored)
	f.resumeApp("")
	f.look(after(10*time.Minute + time.Second))
	f.wantRuns("nodes were started minutes later", j.ID, "skipped 60..540×9 "+restoredText(restored)+". And due since, and nobody could start it within 1m")
	f.wantDues("nodes were started minutes later", j.ID, 600)
}
