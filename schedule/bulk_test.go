package schedule

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go-crontab/internal/faultproxy"
	"go-crontab/job"

	"github.com/google/go-cmp/cmp"
)

// bulk does something to jobs as they are now, and says what became of each.
func (f *fixture) bulk(action job.Action, jobs ...job.Job) string {
	f.Helper()
	want := &job.Bulk{Action: action}
	for _, j := range jobs {
		want.Jobs = append(want.Jobs, job.Seen{ID: j.ID, Version: f.number("SELECT version FROM job WHERE id = ?", j.ID)})
	}
	if err := f.editor.Bulk(f.Context(), want); err != nil {
		f.Fatal(err)
	}
	return bulked(want)
}

func bulked(want *job.Bulk) string {
	var out []string
	for _, d := range want.Done {
		out = append(out, strings.TrimSpace(string(d.Result)+" "+d.Why))
	}
	return strings.Join(out, ", ")
}

// TestBulkIsAsOneByOne: what many get at once is what each would have got alone.
func TestBulkIsAsOneByOne(t *testing.T) {
	f := setUp(t)
	a, b, c := f.create(every("a", 10*time.Second, 5*time.Second)), f.create(every("b", 10*time.Second, 5*time.Second)), f.create(every("c", 10*time.Second, 5*time.Second))
	if got := f.bulk(job.ActionPause, a, b); got != "changed, changed" {
		t.Errorf("pause: got %s", got)
	}
	f.wantDues("paused", a.ID)
	f.wantDues("left alone", c.ID, 5, 15, 25, 35)
	if got := f.bulk(job.ActionPause, c, b, a); got != "changed, unchanged, unchanged" { // in the order that was asked for
		t.Errorf("pause again: got %s", got)
	}
	if _, err := f.editor.Resume(t.Context(), c.ID); err != nil {
		t.Fatal(err)
	}
	if got := f.bulk(job.ActionResume, a, b, c); got != "changed, changed, unchanged" {
		t.Errorf("resume: got %s", got)
	}
	for _, j := range []job.Job{a, b, c} {
		f.wantDues("resumed "+j.Spec.Name, j.ID, 5, 15, 25, 35)
	}
	f.soon = 0
	if got := f.bulk(job.ActionRun, a, b, c); got != "changed, changed, changed" || f.soon != 1 {
		t.Errorf("run: got %s, and %d hints that something is due", got, f.soon)
	}
	f.want("tasks that were asked for", 3, "SELECT COUNT(*) FROM task t JOIN request r ON r.id = t.origin AND r.job_id = t.job_id WHERE r.kind = 'run'")
	if got := f.bulk(job.ActionDelete, a, b); got != "changed, changed" {
		t.Errorf("delete: got %s", got)
	}
	f.want("living", 1, "SELECT COUNT(*) FROM job WHERE living = 1")
	f.want("due times of what is deleted", 0, "SELECT COUNT(*) FROM task WHERE job_id <> ? AND origin = 0", c.ID)
	f.want("found by their names", 0, "SELECT COUNT(*) FROM job_part WHERE job_id <> ?", c.ID)
	f.want("lines of the audit", 3+3+3+3+2, "SELECT COUNT(*) FROM audit")
}

// TestBulkBehindAPause: so it is where a pause has ended by itself and no planner has seen it yet: what has been due since
// is lost with none of it.
func TestBulkBehindAPause(t *testing.T) {
	f := setUp(t)
	for _, of := range []string{"of its own", "of its app"} {
		for _, action := range []job.Action{job.ActionDelete, job.ActionResume, job.ActionPause} {
			t.Run(of+", "+string(action), func(t *testing.T) {
				f := f.anew(t)
				alone, many := f.create(in("a", every("alone", 5*time.Second, 5*time.Second))), f.create(in("a", every("many", 5*time.Second, 5*time.Second)))
				if of == "of its own" {
					f.pauseJob(alone, after(80*time.Second))
					f.pauseJob(many, after(80*time.Second))
				} else {
					f.pauseApp("a", "", after(80*time.Second))
					f.look(after(10 * time.Second))
					f.want("held", 2, "SELECT SUM(held) FROM job")
				}
				f.session.set(after(101 * time.Second))
				var err error
				want := "changed"
				switch action {
				case job.ActionDelete:
					err = f.editor.Delete(t.Context(), alone.ID)
				case job.ActionResume:
					_, err = f.editor.Resume(t.Context(), alone.ID)
					want = "unchanged"
				case job.ActionPause:
					_, err = f.editor.Pause(t.Context(), alone.ID, job.PauseRequest{})
				}
				if err != nil {
					t.Fatal(err)
				}
				f.soon = 0
				if got := f.bulk(action, many); got != want || f.soon != 1 {
					t.Errorf("got %s, and %d hints that something is due; want %s and one", got, f.soon, want)
				}
				if a, b := f.known(alone.ID), f.known(many.ID); !slices.Equal(a, b) {
					t.Errorf("by itself (-), among many (+):\n%s", cmp.Diff(a, b))
				}
				f.want("due times since the end of the pause", 5, "SELECT (SELECT COUNT(*) FROM task WHERE job_id = ? AND due BETWEEN ? AND ?)"+
					" + (SELECT COUNT(*) FROM history WHERE job_id = ? AND due >= ? AND due_count = 1)",
					many.ID, int64(after(80*time.Second)), int64(after(101*time.Second)), many.ID, int64(after(80*time.Second)))
			})
		}
	}
}

// known is what the schema holds of a job, but for its name.
func (f *fixture) known(id int64) (out []string) {
	f.Helper()
	for _, query := range []string{
		"SELECT CONCAT_WS(' ', 'job', COALESCE(living, 0), version, paused, held, paused_at, pause_until, COALESCE(next_due, 0), last_due) FROM job WHERE id = ?",
		"SELECT CONCAT_WS(' ', 'task', due, due_now, state) FROM task WHERE job_id = ? ORDER BY due",
		"SELECT CONCAT_WS(' ', 'run', due, due_last, due_count, outcome, reason) FROM history WHERE job_id = ? ORDER BY due",
		"SELECT CONCAT_WS(' ', 'audit', who, action, reason) FROM audit WHERE kind = 'job' AND ref = ? ORDER BY id",
	} {
		rows, err := f.beside.Raw().Query(query, id)
		if err != nil {
			f.Fatalf("%s: %v", query, err)
		}
		defer rows.Close()
		for rows.Next() {
			var line string
			if err := rows.Scan(&line); err != nil {
				f.Fatal(err)
			}
			out = append(out, line)
		}
	}
	return out
}

// TestBulkRefusesOne: what is not as it was seen is left alone, and so is what makes no sense.
func TestBulkRefusesOne(t *testing.T) {
	f := setUp(t)
	a, b, c, d := f.create(every("a", time.Hour, time.Hour)), f.create(every("b", time.Hour, time.Hour)), f.create(every("c", time.Hour, time.Hour)), f.create(every("d", time.Hour, time.Hour))
	f.update(b, func(s *job.Spec) { s.Owner = "other" })
	if err := f.editor.Delete(t.Context(), c.ID); err != nil {
		t.Fatal(err)
	}
	f.exec("UPDATE job SET spec = '{' WHERE id = ?", d.ID)
	want := &job.Bulk{Action: job.ActionRun, Jobs: []job.Seen{{ID: a.ID, Version: 1}, {ID: b.ID, Version: 1}, {ID: c.ID, Version: 1}, {ID: d.ID, Version: 1}, {ID: 99, Version: 1}}}
	if err := f.editor.Bulk(t.Context(), want); err != nil {
		t.Fatal(err)
	}
	got := bulked(want)
	if !strings.HasPrefix(got, "changed, refused somebody has changed it meanwhile, refused it is deleted, refused ") || !strings.HasSuffix(got, ", refused it is deleted") {
		t.Errorf("got %s", got)
	}
	f.want("runs", 1, "SELECT COUNT(*) FROM task WHERE origin > 0")
	want.Action, want.Pause = job.ActionPause, job.PauseRequest{Until: 1}
	if err := f.editor.Bulk(t.Context(), want); !errors.As(err, new(job.Problems)) {
		t.Errorf("a pause that has ended: got %v", err)
	}
}

// TestBulkFates loses the COMMIT: all of it stands, once, and so do the key and the answer of the request.
func TestBulkFates(t *testing.T) {
	f := setUp(t)
	for name, fate := range map[string]faultproxy.Action{"never arrives": faultproxy.CutBefore(), "reply lost": faultproxy.CutAfter()} {
		for _, key := range []string{"", "k"} {
			t.Run(fmt.Sprint(name, " ", key), func(t *testing.T) {
				f := f.anew(t)
				a, b := f.create(every("a", time.Hour, time.Hour)), f.create(every("b", time.Hour, time.Hour))
				rule := f.proxy.Add(faultproxy.Rule{Match: faultproxy.CommitOf("INSERT INTO audit"), Action: fate})
				want := &job.Bulk{Action: job.ActionRun, Jobs: []job.Seen{{ID: b.ID, Version: 1}, {ID: a.ID, Version: 1}}}
				ctx := t.Context()
				once := &job.Once{Key: key, Kind: "runJobs", Answer: func() job.KeptAnswer { return job.KeptAnswer{Status: 200, Body: []byte(bulked(want))} }}
				if key != "" {
					ctx = job.WithOnce(ctx, once)
				}
				if err := f.editor.Bulk(ctx, want); err != nil || rule.Fired() != 1 {
					t.Fatalf("got %v; injected %d times", err, rule.Fired())
				}
				f.want("runs", 2, "SELECT COUNT(*) FROM task WHERE origin > 0")
				f.want("of b", want.Done[0].Origin, "SELECT origin FROM task WHERE origin > 0 AND job_id = ?", b.ID)
				f.want("requests", 2, "SELECT COUNT(*) FROM request WHERE kind = 'run'")
				f.want("lines of the audit", 2, "SELECT COUNT(*) FROM audit WHERE action = 'run'")
				if key == "" {
					return
				}
				f.want("answers", 1, "SELECT COUNT(*) FROM request WHERE idem_key = 'k' AND status = 200 AND answer = 'changed, changed'")
				if err := f.editor.Bulk(job.WithOnce(t.Context(), &job.Once{Key: key, Kind: "runJobs"}), want); !errors.Is(err, job.ErrRepeated) {
					t.Errorf("again: got %v", err)
				}
				if err := f.editor.Bulk(job.WithOnce(t.Context(), &job.Once{Key: key, Kind: "runJobs", Digest: [32]byte{1}}), want); !errors.Is(err, job.ErrKeyReused) {
					t.Errorf("with another body: got %v", err)
				}
				f.want("runs", 2, "SELECT COUNT(*) FROM task WHERE origin > 0")
			})
		}
	}
}
