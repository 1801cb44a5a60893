package sql

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"go-crontab/job"
)

// TestPlaces: each selector has one number, for good, whoever asks for it first.
func TestPlaces(t *testing.T) {
	f := setUp(t)
	id := func(selector string) (id int) {
		f.tx(func(tx *Tx) (err error) { id, err = tx.PlaceID(selector); return err })
		return id
	}
	if n := id(""); n != 0 {
		t.Errorf("the empty selector is place %d, want 0", n)
	}
	a, b := id("zone=a"), id(`node="höst 1"`)
	if a < 1 || b < 1 || a == b || id("zone=a") != a || id(`node="höst 1"`) != b {
		t.Errorf("got places %d and %d", a, b)
	}
	// Two at once: the second waits for the first and gets its number.
	const both = "gpu,zone=b"
	var first int
	second := make(chan int)
	f.tx(func(tx *Tx) (err error) {
		if first, err = tx.PlaceID(both); err != nil {
			return err
		}
		go func() {
			n := 0
			_ = f.db.Tx(background(t), func(tx *Tx) (err error) { n, err = tx.PlaceID(both); return err })
			second <- n
		}()
		f.awaitLockWait()
		return nil
	})
	if n := <-second; n != first || n < 1 {
		t.Errorf("at once: places %d and %d, want the same", first, n)
	}
	// One that is rolled back is not there.
	gone := errors.New("no")
	f.refused("a place of a change that is refused", gone, func(tx *Tx) error {
		if _, err := tx.PlaceID("zone=gone"); err != nil {
			return err
		}
		return gone
	})
	all, err := f.db.Places(t.Context(), 0)
	if err != nil || len(all) != 3 || all[0] != (Place{a, "zone=a"}) {
		t.Errorf("got %v, %v", all, err)
	}
	if later, err := f.db.Places(t.Context(), a); err != nil || len(later) != 2 {
		t.Errorf("after the first: got %v, %v", later, err)
	}
	of, err := f.db.PlacesOf(t.Context(), []int{b, 12345})
	if err != nil || !slices.Equal(of, []Place{{b, `node="höst 1"`}}) {
		t.Errorf("got %v, %v", of, err)
	}
}

// TestIdleTasksOfPlaces: slices may be of some places only, or of all but some.
func TestIdleTasksOfPlaces(t *testing.T) {
	f := setUp(t)
	ids := map[int]int64{}
	for place := range 4 {
		ids[place] = f.tasks(f.newJob(fmt.Sprint(place)), job.Micros(10+place))[0]
		f.exec("UPDATE task SET place = ? WHERE id = ?", place, ids[place])
	}
	all := func(change func(*Slice)) Slice { s := hashes(0, job.Hashes, 50); change(&s); return s }
	for name, c := range map[string]struct {
		slices []Slice
		want   []int // places
	}{
		"of any":              {[]Slice{all(func(s *Slice) {})}, []int{0, 1, 2, 3}},
		"of two":              {[]Slice{all(func(s *Slice) { s.Places = []int{0, 2} })}, []int{0, 2}},
		"of all but two":      {[]Slice{all(func(s *Slice) { s.Except = []int{0, 3} })}, []int{1, 2}},
		"of some but not one": {[]Slice{all(func(s *Slice) { s.Places, s.Except = []int{1, 2}, []int{2} })}, []int{1}},
		"one slice for each":  {[]Slice{all(func(s *Slice) { s.Places = []int{3} }), all(func(s *Slice) { s.Places, s.Before = []int{0, 1}, 11 })}, []int{0, 3}},
	} {
		got, err := f.db.IdleTasks(t.Context(), c.slices, 99)
		var places []int
		for _, g := range got {
			if places = append(places, g.Place); g.ID != ids[g.Place] {
				t.Errorf("%s: got task %d at place %d", name, g.ID, g.Place)
			}
		}
		if err != nil || !slices.Equal(places, c.want) {
			t.Errorf("%s: got tasks of places %v, %v, want %v", name, places, err, c.want)
		}
	}
	late, err := f.db.OverdueTasks(t.Context(), []int{1, 3}, 13, 99)
	if err != nil || len(late) != 1 || late[0].TaskID != ids[1] || late[0].Place != 1 {
		t.Errorf("overdue: got %+v, %v, want the task of place 1 alone", late, err)
	}
	if late, err := f.db.OverdueTasks(t.Context(), nil, 99, 99); err != nil || late != nil {
		t.Errorf("overdue, of no place: got %+v, %v", late, err)
	}
}

// TestWaitsForNodes: what waits for nodes is found by its place and by its end; moved, it is idle and due when it was.
func TestWaitsForNodes(t *testing.T) {
	f := setUp(t)
	jobID := f.newJob("a")
	ids := f.tasks(jobID, 10, 20, 30, 40)
	f.exec("UPDATE task SET place = 5")
	wait := func(i int, kind WaitKind, place int64, expires job.Micros) Wait {
		return Wait{TaskID: ids[i], JobID: jobID, GroupID: place, Kind: kind, Due: job.Micros(10 * (i + 1)), Since: 50, Expires: expires}
	}
	f.tx(func(tx *Tx) error {
		return tx.Wait(job.Idle, []Wait{wait(0, WaitNode, 5, 100), wait(1, WaitNode, 6, 0), wait(2, WaitGroup, 7, 90)})
	})
	if places, err := f.db.AwaitedPlaces(t.Context()); err != nil || !slices.Equal(places, []int{5, 6}) {
		t.Errorf("awaited: got %v, %v", places, err)
	}
	if w, err := f.db.WaitsForPlaces(t.Context(), []int{6, 7}, 9); err != nil || len(w) != 1 || w[0] != (Unplaced{ids[1], jobID, 6}) {
		t.Errorf("waits for places 6 and 7: got %+v, %v", w, err)
	}
	for now, want := range map[job.Micros]int{99: 0, 100: 1, 1 << 50: 1} {
		if w, err := f.db.ExpiredWaitsForNodes(t.Context(), now, 9); err != nil || len(w) != want {
			t.Errorf("expired at %d: got %+v, %v, want %d", now, w, err, want)
		}
	}
	f.tx(func(tx *Tx) error {
		locked, err := tx.LockTasks(ids)
		if err != nil {
			return err
		}
		rows := slices.Collect(maps.Values(locked))
		found, err := tx.WaitingForNodes(rows)
		if err != nil || len(found) != 2 {
			t.Errorf("wait for nodes: got %+v, %v", found, err)
		}
		return tx.MoveTasks(8, rows)
	})
	f.want("tasks at their new place", 4, "SELECT COUNT(*) FROM task WHERE place = 8")
	f.want("idle, due when they were", 3, "SELECT COUNT(*) FROM task WHERE state = 0 AND due_now = due")
	f.want("those that wait for something else", 1, "SELECT COUNT(*) FROM task t JOIN waiting w ON w.task_id = t.id WHERE t.state = 3 AND w.kind = 2")
	f.want("other waits", 0, "SELECT COUNT(*) FROM waiting WHERE kind = 3")
}

// TestStuckBesideManyWaits: what waits for nodes, in whatever number, is not read to find who waits for runs that nobody executes; and
// what is stray among it is found some at a time.
func TestStuckBesideManyWaits(t *testing.T) {
	f := setUp(t).patient()
	const many = sweepPart + 500
	first := f.newJob("0")
	for n := 1; n < many; n *= 2 {
		f.exec("INSERT INTO job (app, name, hash, spec, next_due, created, updated) SELECT app, id + ?, hash, spec, next_due, 1, 1 FROM job ORDER BY id LIMIT ?", 100_000*n, min(n, many-n))
	}
	f.exec("INSERT INTO task (job_id, due, due_now, hash, state) SELECT id, id, id, 7, 3 FROM job")
	f.exec("INSERT INTO waiting (task_id, kind, job_id, group_id, due, since, expires) SELECT id, IF(job_id MOD 5000 = ?, 1, 3), job_id, 1, due, 1, ? FROM task", first%5000, int64(never))
	stuck := f.number("SELECT COUNT(*) FROM waiting WHERE kind = 1")
	f.exec("ANALYZE TABLE job, task, waiting")
	db, _ := f.behind(1)
	if _, err := db.StuckJobs(t.Context(), 0, 100); err != nil { // to open a table for the first time the server reads what it knows of it
		t.Fatal(err)
	}
	before := handlerReads(t, db)
	found, err := db.StuckJobs(t.Context(), 0, 100)
	if read := handlerReads(t, db) - before; err != nil || int64(len(found)) != stuck || read > 500 {
		t.Errorf("got %d jobs, %v, with %d rows read; want %d jobs, and few rows", len(found), err, read, stuck)
	}
	if behind, err := db.StuckJobs(t.Context(), found[1], 100); err != nil || !slices.Equal(behind, found[2:]) {
		t.Errorf("behind the second: got %v, %v", behind, err)
	}
	f.exec("DELETE FROM task ORDER BY id LIMIT 1")
	f.exec("UPDATE task SET state = 0 ORDER BY id DESC LIMIT 1")
	f.exec("DELETE FROM waiting WHERE task_id = ?", f.number("SELECT MIN(id) + 5 FROM task")) // by a hand
	for range 2 {
		if err := db.Sweep(t.Context(), 50); err != nil {
			t.Fatal(err)
		}
	}
	f.want("what is left of waits", many-3, "SELECT COUNT(*) FROM waiting")
	f.want("tasks that wait", many-3, "SELECT COUNT(*) FROM task WHERE state = 3")
	f.want("tasks that wait for nothing that anybody knows", 0, "SELECT COUNT(*) FROM task t LEFT JOIN waiting w ON w.task_id = t.id WHERE t.state = 3 AND w.task_id IS NULL")
}

// TestStuckAmongManyWaits: of few jobs each of which has many tasks that wait for runs of it, a few rows each are read.
func TestStuckAmongManyWaits(t *testing.T) {
	f := setUp(t).patient()
	const jobs, many = 10, 20_000
	var ids []int64
	for i := range jobs {
		ids = append(ids, f.newJob(fmt.Sprint(i)))
	}
	f.exec("INSERT INTO task (job_id, due, due_now, hash, state) SELECT id, 1, 1, 7, 3 FROM job")
	for n := jobs; n < many; n *= 2 {
		f.exec("INSERT INTO task (job_id, due, due_now, hash, state) SELECT job_id, due + ?, due, hash, state FROM task ORDER BY id LIMIT ?", n, min(n, many-n))
	}
	f.exec("INSERT INTO waiting (task_id, kind, job_id, due, since, expires) SELECT id, 1, job_id, due, due, ? FROM task", int64(never))
	f.exec("UPDATE task SET state = 2 WHERE job_id IN (?, ?) AND due = 1", ids[2], ids[7]) // two of the jobs execute
	f.exec("ANALYZE TABLE task, waiting")
	db, _ := f.behind(1)
	want := slices.Concat(ids[:2], ids[3:7], ids[8:])
	if _, err := db.StuckJobs(t.Context(), 0, 100); err != nil { // to open a table for the first time the server reads what it knows of it
		t.Fatal(err)
	}
	before := handlerReads(t, db)
	found, err := db.StuckJobs(t.Context(), 0, 100)
	if read := handlerReads(t, db) - before; err != nil || !slices.Equal(found, want) || read > 500 {
		t.Errorf("got jobs %v, %v, with %d rows read; want jobs %v, and few rows", found, err, read, want)
	}
	if found, err := db.StuckJobs(t.Context(), ids[4], 2); err != nil || !slices.Equal(found, want[4:6]) {
		t.Errorf("behind the fifth: got %v, %v, want %v", found, err, want[4:6])
	}
}

// TestLivingJobsAmongDeleted: to list living jobs by id reads none that were deleted, in whatever number.
func TestLivingJobsAmongDeleted(t *testing.T) {
	f := setUp(t).patient()
	const deleted = 20_000
	first := f.newJob("0")
	for n := 1; n < deleted; n *= 2 {
		f.exec("INSERT INTO job (app, name, hash, spec, next_due, created, updated) SELECT app, id + ?, hash, spec, next_due, 1, 1 FROM job ORDER BY id LIMIT ?", 100_000*n, min(n, deleted-n))
	}
	f.exec("UPDATE job SET living = NULL WHERE id <> ?", first)
	all := []int64{first, f.newJob("b"), f.newJob("c")}
	f.exec("ANALYZE TABLE job")
	db, _ := f.behind(1)
	for name, list := range map[string]func(after int64) (ids []int64, err error){
		"jobs": func(after int64) (ids []int64, err error) {
			rows, err := db.JobsBehind(t.Context(), after, 2)
			for _, j := range rows {
				ids = append(ids, j.ID)
			}
			return ids, err
		},
		"jobs for alerts": func(after int64) (ids []int64, err error) {
			rows, err := db.AlertJobsAfter(t.Context(), after, 2)
			for _, j := range rows {
				ids = append(ids, j.ID)
			}
			return ids, err
		},
	} {
		if _, err := list(0); err != nil { // to open a table for the first time the server reads what it knows of it
			t.Fatal(err)
		}
		for after, want := range map[int64][]int64{0: all[:2], first: all[1:]} {
			before := handlerReads(t, db)
			got, err := list(after)
			if read := handlerReads(t, db) - before; err != nil || !slices.Equal(got, want) || read > 500 {
				t.Errorf("%s behind %d: got %v, %v, with %d rows read, want %v and few rows", name, after, got, err, read, want)
			}
		}
	}
}

// TestClosedPlaces: who locks places waits for who holds them, and who holds them does not wait for another who does.
func TestClosedPlaces(t *testing.T) {
	f := setUp(t)
	var a, b int
	f.tx(func(tx *Tx) (err error) {
		if a, err = tx.PlaceID("a"); err == nil {
			b, err = tx.PlaceID("b")
		}
		return err
	})
	closed := make(chan error, 1)
	f.tx(func(tx *Tx) error {
		if err := tx.HoldPlaces([]int{a, b}); err != nil {
			return err
		}
		if err := f.db.Tx(t.Context(), func(tx *Tx) error { return tx.HoldPlaces([]int{b}) }); err != nil {
			t.Errorf("a second who holds: %v", err)
		}
		go func() { closed <- f.db.Tx(background(t), func(tx *Tx) error { return tx.LockPlaces([]int{b}) }) }()
		f.awaitLockWait()
		select {
		case err := <-closed:
			t.Errorf("locked what was held: %v", err)
		default:
		}
		return nil
	})
	if err := <-closed; err != nil {
		t.Error(err)
	}
	jobID := f.newJob("a")
	f.exec("UPDATE job SET place = ? WHERE id = ?", b, jobID)
	f.tasks(jobID, 10, 20, 30)
	f.exec("UPDATE task SET state = 2, spawn_by = due + 5 WHERE due < 30")
	for place, want := range map[int]job.Micros{a: 0, b: 25} {
		var got job.Micros
		f.tx(func(tx *Tx) (err error) { got, err = tx.SpawnUntil([]int{place}); return err })
		if got != want {
			t.Errorf("spawned at place %d until %d, want %d", place, got, want)
		}
	}
}

// TestNodesAndHandlers: what is said of them stands until it is taken back.
func TestNodesAndHandlers(t *testing.T) {
	f := setUp(t)
	none := func(what string, err error) {
		t.Helper()
		if !errors.Is(err, ErrNotFound) {
			t.Errorf("%s: got %v, want %v", what, err, ErrNotFound)
		}
	}
	f.tx(func(tx *Tx) error {
		_, err := tx.LockNode("one")
		none("a node of which nothing is said", err)
		_, err = tx.LockHandlerOff("mail")
		none("a handler of which nothing is said", err)
		if err := tx.CordonNode(NodeRow{Name: "one", Reason: "disk", Who: "ann", Since: 7}); err != nil {
			return err
		}
		return tx.DisableHandler(HandlerOff{Handler: "mail", Reason: "spam", Who: "bob", Since: 8})
	})
	f.tx(func(tx *Tx) error {
		n, err := tx.LockNode("one")
		if n != (NodeRow{Name: "one", Reason: "disk", Who: "ann", Since: 7}) {
			t.Errorf("got %+v, %v", n, err)
		}
		n.Draining = true
		return tx.CordonNode(n)
	})
	nodes, err := f.db.CordonedNodes(t.Context())
	if err != nil || len(nodes) != 1 || !nodes[0].Draining {
		t.Errorf("got %+v, %v", nodes, err)
	}
	f.tx(func(tx *Tx) error {
		off, err := tx.HandlersOff([]string{"mail", "other"})
		if len(off) != 1 || off["mail"].Who != "bob" {
			t.Errorf("got %+v, %v", off, err)
		}
		return errors.Join(err, tx.EnableHandler("mail"), tx.UncordonNode("one"))
	})
	f.want("nodes and handlers of which something is said", 0, "SELECT (SELECT COUNT(*) FROM node) + (SELECT COUNT(*) FROM handler_off)")

	me, other := session(1), session(2)
	ids := f.tasks(f.newJob("a"), 10, 20, 30)
	f.claimed(me, 1, ids[:2])
	f.claimed(other, 1, ids[2:])
	f.exec("UPDATE task SET state = 2 WHERE id = ?", ids[0])
	loads, err := f.db.Loads(t.Context())
	if err != nil || loads[me] != (Load{Prepared: 1, Executing: 1}) || loads[other] != (Load{Prepared: 1}) {
		t.Errorf("got %+v, %v", loads, err)
	}
}

// TestJobsOfOwnersAndLabels: what a definition says of both is found, whatever characters it uses; what is no JSON is
// in nobody's way.
func TestJobsOfOwnersAndLabels(t *testing.T) {
	f := setUp(t)
	add := func(name string, spec job.Spec) {
		spec.App, spec.Name, spec.Schedule, spec.Command = "a", name, "0 0 1 1 *", "true"
		text, err := spec.Encode()
		if err != nil {
			t.Fatal(err)
		}
		f.tx(func(tx *Tx) error {
			_, err := tx.InsertJob(&job.Job{Spec: spec, Version: 1, Place: len(spec.Handler), Created: 1, Updated: 1}, text)
			return err
		})
	}
	odd := "<ö> & \"東\" \\ '; --"
	add("one", job.Spec{Owner: "ann", Labels: map[string]string{"team": "data", odd: odd}, Handler: "mail"})
	add("two", job.Spec{Owner: odd, Labels: map[string]string{"team": "data", "tier": ""}, Handler: "mail"})
	add("three", job.Spec{Labels: map[string]string{"team": "web"}})
	for i, spec := range []string{"", "{", "null", `[1]`, `{"labels":7,"owner":{}}`} {
		f.exec("INSERT INTO job (app, name, hash, place, spec, created, updated) VALUES ('bad', ?, 7, 1, ?, 1, 1)", i, spec)
	}
	labels := func(kv ...string) map[string]string {
		m := map[string]string{}
		for i := 0; i < len(kv); i += 2 {
			m[kv[i]] = kv[i+1]
		}
		return m
	}
	for name, c := range map[string]struct {
		filter JobFilter
		want   []string
	}{
		"an owner":                 {JobFilter{Owner: "ann"}, []string{"one"}},
		"an odd owner":             {JobFilter{Owner: odd}, []string{"two"}},
		"nobody":                   {JobFilter{Owner: "eve"}, nil},
		"a label":                  {JobFilter{Labels: labels("team", "data")}, []string{"one", "two"}},
		"a label with no value":    {JobFilter{Labels: labels("tier", "")}, []string{"two"}},
		"an odd label":             {JobFilter{Labels: labels(odd, odd)}, []string{"one"}},
		"two labels":               {JobFilter{Labels: labels("team", "data", "tier", "")}, []string{"two"}},
		"another value":            {JobFilter{Labels: labels("team", "dat")}, nil},
		"a label that nothing has": {JobFilter{Labels: labels("zone", "a")}, nil},
		"owner and label":          {JobFilter{Owner: "ann", Labels: labels("team", "web")}, nil},
	} {
		c.filter.Limit = 99
		rows, err := f.db.Jobs(t.Context(), c.filter)
		var got []string
		for _, r := range rows {
			got = append(got, r.Spec.Name)
		}
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: got %v, %v, want %v", name, got, err, c.want)
		}
	}
	f.exec("INSERT INTO place (id, selector) VALUES (1, 'handler/mail'), (4, 'handler/mail,zone=a')")
	jobs, err := f.db.HandlerJobs(t.Context(), nil)
	if want := map[string]int{"mail": 2}; err != nil || !maps.Equal(jobs, want) {
		t.Errorf("jobs of handlers: got %v, %v, want %v", jobs, err, want)
	}
}
