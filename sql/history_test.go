package sql

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"go-crontab/internal/faultproxy"
	"go-crontab/job"
)

// TestInsertRuns writes more runs than one statement takes, a few of them with large outputs, and reads them back.
func TestInsertRuns(t *testing.T) {
	f := setUp(t)
	db, proxy := f.behind(1)
	largest := 0
	proxy.OnCommand(func(c faultproxy.Command) { largest = max(largest, len(c.SQL)) })
	jobID := f.newJob("j")
	runs := make([]job.Run, 1203)
	for i := range runs {
		due := job.Micros(1000 + i)
		runs[i] = run(job.Task{JobID: jobID, Due: due, Launch: job.Launch{Session: session(9), N: int64(1 + i)}}, job.Succeeded)
	}
	code := 3
	full := &runs[700]
	*full = job.Run{
		Launch: full.Launch, JobID: jobID, Due: 1700, Until: 1900, Count: 17, Origin: 5, Attempt: 2, Final: false, Started: 1710, Ended: 1720, Lateness: -4,
		Node: "näme", Result: job.Result{Outcome: job.Failed, Reason: "exit 3; 'quoted' \\ \" 🕰", ExitCode: &code, Signal: "SIGKILL",
			Output: job.Output{Head: []byte("head \x00\xff\xfe'\\\""), Tail: []byte("tail\n"), Bytes: 4711}},
	}
	for i := range 11 { // 3 MB in all, of what needs quoting most
		runs[i].Output = job.Output{Head: bytes.Repeat([]byte{'\''}, 128<<10), Tail: bytes.Repeat([]byte{byte(i)}, 128<<10), Bytes: 1 << 30}
	}
	runs[50].Output = job.Output{Tail: []byte("only a tail"), Bytes: 100}
	runs[51].Output = job.Output{Head: []byte("only a head"), Bytes: 11}
	if err := db.Tx(t.Context(), func(tx *Tx) error { return tx.InsertRuns(runs) }); err != nil {
		t.Fatal(err)
	}
	if limit := 5 << 20; largest > limit {
		t.Errorf("the largest statement has %d bytes, want at most %d", largest, limit)
	}
	f.want("rows of history", int64(len(runs)), "SELECT COUNT(*) FROM history")
	f.want("rows of output", 14, "SELECT COUNT(*) FROM output")
	for _, i := range []int{0, 10, 11, 50, 51, 499, 500, 700, 999, 1000, 1202} {
		got, err := f.db.Run(t.Context(), runs[i].Launch)
		if err != nil {
			t.Errorf("run %d: %v", i, err)
			continue
		}
		want := runs[i]
		if want.Output.Bytes > 0 && want.Output.Head == nil {
			want.Output.Head = []byte{}
		}
		if want.Output.Bytes > 0 && want.Output.Tail == nil {
			want.Output.Tail = []byte{}
		}
		if d := cmp.Diff(want, got.Run); d != "" {
			t.Errorf("run %d: got (+) is not what was written (-):\n%s", i, d)
		}
		if kept := int64(len(want.Output.Head) + len(want.Output.Tail)); got.Kept != kept || got.App != "a" || got.Job != "j" || got.Executing {
			t.Errorf("run %d: got %d bytes kept, app %q, job %q, executing %v; want %d, a, j, false", i, got.Kept, got.App, got.Job, got.Executing, kept)
		}
	}
	if _, err := f.db.Run(t.Context(), job.Launch{Session: session(9), N: 5000}); err != ErrNotFound {
		t.Errorf("a run that is not there: got %v, want %v", err, ErrNotFound)
	}
}

// TestNoTaskEndsTwice: one duplicate refuses the whole transaction, whatever else it wrote.
func TestNoTaskEndsTwice(t *testing.T) {
	f := setUp(t)
	task := job.Task{JobID: f.newJob("j"), Due: 50, Origin: 3, Attempt: 2, Launch: job.Launch{Session: session(1), N: 1}}
	f.tx(func(tx *Tx) error { return tx.InsertRuns([]job.Run{run(task, job.Succeeded)}) })
	for name, c := range map[string]struct {
		change    func(*job.Run)
		duplicate bool
	}{
		"the same attempt under another launch": {func(r *job.Run) { r.Launch.N = 2 }, true},
		"the same, told by another session":     {func(r *job.Run) { r.Launch.Session = session(2) }, true},
		"the same launch of another due time":   {func(r *job.Run) { r.Due = 51 }, true},
		"the next attempt":                      {func(r *job.Run) { r.Attempt, r.Launch.N = 3, 10 }, false},
		"another due time":                      {func(r *job.Run) { r.Due, r.Launch.N = 52, 11 }, false},
		"another request":                       {func(r *job.Run) { r.Origin, r.Launch.N = 4, 12 }, false},
		"another job":                           {func(r *job.Run) { r.JobID, r.Launch.N = task.JobID+1, 13 }, false},
	} {
		r := run(task, job.Lost)
		c.change(&r)
		before := f.number("SELECT COUNT(*) FROM history")
		err := f.db.Tx(t.Context(), func(tx *Tx) error {
			beside := run(job.Task{JobID: r.JobID, Due: 1, Launch: job.Launch{Session: session(3), N: before}}, job.Succeeded)
			beside.Attempt = int(before)
			return tx.InsertRuns([]job.Run{beside, r})
		})
		if isDuplicate(err) != c.duplicate || (err == nil) == c.duplicate {
			t.Errorf("%s: got error %v, want a duplicate key: %v", name, err, c.duplicate)
		}
		want := before
		if !c.duplicate {
			want += 2
		}
		f.want(name+": rows", want, "SELECT COUNT(*) FROM history")
	}
}

// TestCut: what is cut fits the column, is valid, and is what it was where it fits.
func TestCut(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		s    string
		n    int
		want string
	}{
		"short":                       {"abc", 3, "abc"},
		"a letter too long":           {"abcd", 3, "ab…"},
		"runes count, not bytes":      {"äöü", 3, "äöü"},
		"a rune too many":             {"äöüß", 3, "äö…"},
		"nothing":                     {"", 3, ""},
		"bytes that are no character": {"a\xff\xfeb", 9, "a\uFFFDb"},
	} {
		if got := cut(c.s, c.n); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		s := string(rapid.SliceOf(rapid.Byte()).Draw(t, "bytes")) + rapid.String().Draw(t, "text")
		n := rapid.IntRange(1, 20).Draw(t, "n")
		got := cut(s, n)
		if !utf8.ValidString(got) || utf8.RuneCountInString(got) > n {
			t.Fatalf("cut(%q, %d): got %q, want valid text of at most %d runes", s, n, got, n)
		}
		if utf8.ValidString(s) && utf8.RuneCountInString(s) <= n && got != s {
			t.Fatalf("cut(%q, %d): got %q, want it as it was", s, n, got)
		}
	})
}

// TestReasonIsCut: the longest reason that fits into memory fits into its column.
func TestReasonIsCut(t *testing.T) {
	f := setUp(t)
	r := run(job.Task{JobID: f.newJob("j"), Due: 1, Launch: job.Launch{Session: session(1), N: 1}}, job.Failed)
	r.Reason = strings.Repeat("🕰", 5000)
	f.tx(func(tx *Tx) error { return tx.InsertRuns([]job.Run{r}) })
	got, err := f.db.Run(t.Context(), r.Launch)
	if want := strings.Repeat("🕰", 511) + "…"; err != nil || got.Reason != want {
		t.Errorf("got %d bytes, %v; want %d", len(got.Reason), err, len(want))
	}
}

// TestRunsInPages reads lists page by page: each run once, in order, whatever the size of a page.
func TestRunsInPages(t *testing.T) {
	f := setUp(t)
	jobs := []int64{f.newJob("j"), f.newJob("k")}
	n := int64(0)
	var all []job.Run
	for _, id := range jobs {
		for _, due := range []job.Micros{70, 50, 60} { // not in the order in which they are written
			for _, origin := range []int64{0, 9} {
				for attempt := 1; attempt <= 2; attempt++ {
					n++
					r := run(job.Task{JobID: id, Due: due, Origin: origin, Attempt: attempt, Launch: job.Launch{Session: session(1), N: n}}, job.Succeeded)
					all = append(all, r)
				}
			}
		}
	}
	f.tx(func(tx *Tx) error { return tx.InsertRuns(all) })
	for name, filter := range map[string]RunFilter{"of all jobs": {}, "of one job": {JobID: jobs[0]}, "of an app": {App: "a"}, "due in between": {From: 50, To: 61}} {
		filter.Limit = 1000
		want, err := f.db.Runs(t.Context(), filter)
		if err != nil {
			t.Fatal(err)
		}
		count := 0
		for _, r := range all {
			if (filter.JobID == 0 || r.JobID == filter.JobID) && r.Due >= filter.From && (filter.To == 0 || r.Due < filter.To) {
				count++
			}
		}
		if len(want) != count {
			t.Errorf("%s: got %d runs, want %d", name, len(want), count)
		}
		if !slices.IsSortedFunc(want, func(a, b RunRow) int { return later(filter, a, b) }) {
			t.Errorf("%s: not in order", name)
		}
		for _, size := range []int{1, 2, 5, 7, 24} {
			filter.Limit, filter.After = size, nil
			var got []RunRow
			for {
				page, err := f.db.Runs(t.Context(), filter)
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, page...)
				if len(page) < size || len(got) > count {
					break
				}
				filter.After = page[len(page)-1].Place()
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("%s, in pages of %d: got (+) is not the whole list (-):\n%s", name, size, d)
			}
		}
	}
}

// later orders runs as lists show them.
func later(f RunFilter, a, b RunRow) int {
	if f.JobID == 0 {
		if a.Due != b.Due {
			return int(b.Due - a.Due)
		}
		return int(b.ID - a.ID)
	}
	for _, d := range []int64{int64(b.Due - a.Due), b.Origin - a.Origin, int64(b.Attempt - a.Attempt)} {
		if d != 0 {
			return int(d)
		}
	}
	return 0
}

// TestRunsOfOneNumber: a list of the runs of an app names none of another one that happens to have the same number in rows of
// history, and none of a job that has moved to another app, by whichever index it is read.
func TestRunsOfOneNumber(t *testing.T) {
	f := setUp(t)
	apps := []string{"plumless", "buckeroo"}
	if appNumber(apps[0]) != appNumber(apps[1]) {
		t.Fatal("they do not share a number")
	}
	var runs []job.Run
	jobs := map[string]int64{}
	for i, app := range apps {
		jobs[app] = f.newJob(app)
		f.exec("UPDATE job SET app = ? WHERE id = ?", app, jobs[app])
		for n, o := range []job.Outcome{job.Succeeded, job.Failed} {
			r := run(job.Task{JobID: jobs[app], Due: job.Micros(10 + n), Launch: job.Launch{Session: session(9), N: int64(10*i + n + 1)}}, o)
			r.App, r.Node = app, "web-1"
			runs = append(runs, r)
		}
	}
	f.tx(func(tx *Tx) error { return tx.InsertRuns(runs) })
	moved := f.newJob("moved") // and is not stamped yet
	gone := run(job.Task{JobID: moved, Due: 5, Launch: job.Launch{Session: session(9), N: 99}}, job.Failed)
	gone.App, gone.Node = apps[0], "web-1"
	f.tx(func(tx *Tx) error { return tx.InsertRuns([]job.Run{gone}) })
	schedule := BySchedule
	many := append(slices.Clone(apps[:1]), "b", "c", "d", "e", "f")
	for name, filter := range map[string]RunFilter{
		"an app":                      {App: apps[0]},
		"an app and a node":           {App: apps[0], Node: "web-1"},
		"a limited token":             {Apps: apps[:1]},
		"a limited token, and a node": {Apps: apps[:1], Node: "web-1"},
		"many apps":                   {Apps: many},
		"many apps, and a node":       {Apps: many, Node: "web-1"},
		"failed, of a node":           {Apps: apps[:1], Node: "web-1", Outcome: job.Failed},
		"by the schedule, of a node":  {Apps: apps[:1], Node: "web-1", Trigger: &schedule},
		"a job of the other app":      {Apps: apps[:1], JobID: jobs[apps[1]]},
		"its failures":                {Apps: apps[:1], JobID: jobs[apps[1]], Outcome: job.Failed},
		"its failures, of a node":     {Apps: apps[:1], JobID: jobs[apps[1]], Outcome: job.Failed, Node: "web-1"},
		"a job that has moved":        {Apps: apps[:1], JobID: moved},
	} {
		want := 2
		if filter.JobID != 0 {
			want = 0
		} else if filter.Outcome != 0 {
			want = 1
		}
		filter.Limit = 10
		found, err := f.db.Runs(t.Context(), filter)
		if err != nil || len(found) != want {
			t.Errorf("%s: got %d runs, %v; want %d", name, len(found), err, want)
		}
		for _, r := range found {
			if r.JobID != jobs[apps[0]] {
				t.Errorf("%s: got a run of job %d, want only those of %d", name, r.JobID, jobs[apps[0]])
			}
		}
	}
}
