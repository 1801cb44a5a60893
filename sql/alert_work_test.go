package sql

import (
	"fmt"
	"slices"
	"testing"

	"go-crontab/job"
)

// TestDueDeliveries: what waits for busy lanes takes nobody's place in the list, and what was sent and what calls monitors is
// not read to find what goes to channels.
func TestDueDeliveries(t *testing.T) {
	f := setUp(t)
	const pings, now, limit = 4096, 1000, 20
	insert := "INSERT INTO delivery (idem, kind, channel_id, job_id, state, next_at, items, created, updated) "
	f.exec(insert + "VALUES ('', 'ping', 0, 1, 0, 1, '[]', 1, 1)")
	for n := 1; n < pings; n *= 2 {
		f.exec(insert+"SELECT '', 'ping', 0, job_id + ?, 0, 1, '[]', 1, 1 FROM delivery", n)
	}
	f.exec("UPDATE delivery SET target = IF(job_id MOD 2 = 0, 'even', 'odd')")
	f.exec(insert + "SELECT '', 'alert', 1, 0, 2, 1, '[]', 1, 1 FROM delivery")
	for i := range 40 {
		f.exec(insert+"VALUES ('', 'alert', 1, 0, 0, ?, '[]', 1, 1)", 10+i)
	}
	for i := range 10 {
		f.exec(insert+"VALUES ('', 'heartbeat', 2, 0, 0, ?, '[]', 1, 1)", 100+i)
	}
	f.exec(insert + "VALUES ('', 'alert', 2, 0, 0, 1001, '[]', 1, 1), ('', 'alert', 1, 0, 1, 1, '[]', 1, 1), ('', 'alert', 2, 0, 1, 1, '[]', 1, 1)")
	db, _ := f.behind(1)
	for _, c := range []struct {
		name string
		busy BusyLanes
		want map[string]int
		most int64 // rows that may be read; 0: any
	}{
		{"nothing is busy", BusyLanes{}, map[string]int{"pings 0": 5, "pings 1": 5, "pings 2": 5, "pings 3": 5, "channel 1": 21, "channel 2": 1}, 0},
		{"a channel", BusyLanes{Channels: []int64{1}}, map[string]int{"pings 0": 5, "pings 1": 5, "pings 2": 5, "pings 3": 5, "channel 2": 11}, 0},
		{"some pings", BusyLanes{Pings: []PingLane{{"even", 0}, {"odd", 1}, {"odd", 3}, {"odd", 2}}}, map[string]int{"pings 2": 20, "channel 1": 21, "channel 2": 1}, 0},
		{"all pings, and a channel", BusyLanes{Channels: []int64{1, 7}, Pings: []PingLane{{"even", 0}}, NoPings: true}, map[string]int{"channel 2": 11}, 400},
	} {
		if _, err := db.DueDeliveries(t.Context(), now, c.busy, limit); err != nil { // to open a table the server reads more
			t.Fatal(err)
		}
		before := handlerReads(t, db)
		rows, err := db.DueDeliveries(t.Context(), now, c.busy, limit)
		if err != nil {
			t.Fatal(err)
		}
		read := handlerReads(t, db) - before
		got := map[string]int{}
		for _, d := range rows {
			if d.Kind == DeliveryPing {
				got[fmt.Sprintf("pings %d", d.JobID%4)]++
			} else {
				got[fmt.Sprintf("channel %d", d.ChannelID)]++
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
		if c.most > 0 && read > c.most {
			t.Errorf("%s: %d rows were read, want no more than %d", c.name, read, c.most)
		}
	}
}

// TestNotRunInParts: of jobs with very many records of due times for which nothing began, each call reads some, and none twice.
func TestNotRunInParts(t *testing.T) {
	const since, records = job.Micros(1_000_000), 30_000
	f := setUp(t).patient()
	skip := func(id int64, n int) {
		f.exec("INSERT INTO history (job_id, due, attempt, session_id, launch, outcome, due_last, ended) VALUES (?, ?, 1, 'x', ?, 6, 0, 1)", id, int64(since), id*records)
		for k := 1; k < n; k *= 2 {
			f.exec("INSERT INTO history (job_id, due, attempt, session_id, launch, outcome, due_last, ended) SELECT job_id, due + ?, 1, 'x', launch + ?, 6, 0, 1 FROM history WHERE job_id = ? ORDER BY due LIMIT ?",
				k, k, id, min(k, n-k))
		}
	}
	never, once, few, gone := f.newJob("never"), f.newJob("once"), f.newJob("few"), f.newJob("gone")
	skip(never, records)
	skip(once, records)
	skip(few, 20)
	f.exec("UPDATE history SET started = 1 WHERE job_id = ? AND due = ?", once, int64(since)+records/2)
	f.exec("UPDATE job SET last_due = ?", int64(since)+records)
	db, _ := f.behind(1)
	looks := map[int64]*RunLook{}
	call := func(what string, since job.Micros, most int64, found, open []int64) {
		t.Helper()
		before := handlerReads(t, db)
		gotFound, gotOpen, err := db.NotRun(t.Context(), looks, []int64{never, once, few, gone}, since)
		if err != nil {
			t.Fatal(err)
		}
		if read := handlerReads(t, db) - before; read > most {
			t.Errorf("%s: %d rows were read, want no more than %d", what, read, most)
		}
		if !slices.Equal(gotFound, found) || !slices.Equal(gotOpen, open) {
			t.Errorf("%s: got %v, and %v that are not known, want %v and %v", what, gotFound, gotOpen, found, open)
		}
	}
	const part, little = lookParts*lookRows + 1500, 1500 // to open tables, and to ask how much was read, reads as well
	call("the first parts", since, part, []int64{few}, []int64{never, once})
	call("the next parts", since, part, []int64{few}, []int64{never})
	call("the last parts", since, part, []int64{never, few}, nil)
	call("once more", since, little, []int64{never, few}, nil)
	call("from later on", since+5, little, []int64{never, few}, nil)
	call("from earlier on", since-1, part, []int64{few}, []int64{never})
	call("and further", since-1, part, []int64{never, few}, nil)
	looks[never].Began = since + 6
	call("one has begun that was due before others", since+5, little, []int64{few}, nil)
	call("and is of before", since+7, little, []int64{never, few}, nil)
	call("behind all due times", since+2*records, little, []int64{never, once, few, gone}, nil)
}

// TestAlertTasks: each due time of a state is listed once, the earliest first, however many there are at one instant, and no
// more are read than are listed.
func TestAlertTasks(t *testing.T) {
	const n, limit = 1000, 64
	f := setUp(t).patient()
	f.exec("ALTER TABLE task STATS_PERSISTENT=1, STATS_AUTO_RECALC=0") // the server believes that it is empty
	f.exec("INSERT INTO task (job_id, due, due_now, hash, state) VALUES (1, 1, 1, 0, 2)")
	for k := 1; k < n; k *= 2 {
		f.exec("INSERT INTO task (job_id, due, due_now, hash, state) SELECT job_id + ?, due, due_now, 0, 2 FROM task ORDER BY id LIMIT ?", k, min(k, n-k))
	}
	f.exec("UPDATE task SET due_now = 1 + job_id DIV 300, hash = job_id MOD 3, priority = job_id MOD 2, state = IF(job_id > 900, 0, 2)")
	want := f.list("SELECT job_id FROM task WHERE state = 2 AND due_now < 4 ORDER BY due_now, hash, place, priority, id")
	db, _ := f.behind(1)
	at := TaskPlace{State: job.Executing}
	if _, err := db.AlertTasks(t.Context(), at, 4, limit); err != nil { // opens the table
		t.Fatal(err)
	}
	var got []int64
	for {
		before := handlerReads(t, db)
		tasks, err := db.AlertTasks(t.Context(), at, 4, limit)
		if err != nil {
			t.Fatal(err)
		}
		if read := handlerReads(t, db) - before; read > 300+2*limit {
			t.Errorf("%d rows were read for %d", read, len(tasks))
		}
		for _, task := range tasks {
			got, at = append(got, task.JobID), task.TaskPlace
		}
		if len(tasks) < limit {
			break
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %d due times, want %d: %v", len(got), len(want), got)
	}
}
