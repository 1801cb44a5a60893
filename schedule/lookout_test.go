package schedule

import (
	"testing"
	"time"

	"go-crontab/job"
	"go-crontab/sql"
)

// TestBehind: chores wait while something is overdue by more than a second, and only as long as somebody knows.
func TestBehind(t *testing.T) {
	now := job.Micros(1_000_000_000)
	for name, c := range map[string]struct {
		l    *Lookout
		want bool
	}{
		"nobody has looked":          {&Lookout{}, false},
		"there is no lookout":        {nil, false},
		"nothing is planned":         {behold(sql.Glance{}, 0), false},
		"a task is due now":          {behold(sql.Glance{FirstIdle: now}, 0), false},
		"a task is overdue":          {behold(sql.Glance{FirstIdle: now - 1_500_000}, 0), true},
		"a cursor is overdue":        {behold(sql.Glance{FirstIdle: now, FirstCursor: now - 1_500_000}, 0), true},
		"it was so, some time ago":   {behold(sql.Glance{FirstIdle: now - 1_500_000}, 2*blind), false},
		"the next is due in an hour": {behold(sql.Glance{FirstIdle: now + 3_600_000_000}, 0), false},
	} {
		if got := c.l.Behind(now); got != c.want {
			t.Errorf("%s: got %t, want %t", name, got, c.want)
		}
	}
}

// TestAlone: one session is alone, however that one stands, and only as long as somebody knows.
func TestAlone(t *testing.T) {
	one := int64(1)<<32 | 0x9abcdef0 // below, a check sum of the sessions
	for name, c := range map[string]struct {
		l    *Lookout
		want bool
	}{
		"nobody has looked":        {&Lookout{}, false},
		"there is no lookout":      {nil, false},
		"one session":              {behold(sql.Glance{Sessions: one}, 0), true},
		"two sessions":             {behold(sql.Glance{Sessions: one + 1<<32}, 0), false},
		"none, not even our own":   {behold(sql.Glance{}, 0), false},
		"it was so, some time ago": {behold(sql.Glance{Sessions: one}, 2*blind), false},
	} {
		if got := c.l.Alone(); got != c.want {
			t.Errorf("%s: got %t, want %t", name, got, c.want)
		}
	}
}

// TestNoBackfill: a glance tells between which jobs backfills run; who knows nothing reckons with one.
func TestNoBackfill(t *testing.T) {
	f := setUp(t)
	f.exec("INSERT INTO backfill (id, job_id, first, last, parallel, total, state, created, updated) VALUES (1, 40, 1, 2, 1, 2, 1, 1, 1)")
	none, err := f.beside.Glance(t.Context(), sql.GlanceOf{})
	if err != nil {
		t.Fatal(err)
	}
	f.exec("INSERT INTO backfill (id, job_id, first, last, parallel, total, state, created, updated) VALUES (2, 9, 1, 2, 1, 2, 0, 1, 1), (3, 7, 1, 2, 1, 2, 0, 1, 1), (4, 3, 1, 2, 1, 2, 2, 1, 1)")
	some, err := f.beside.Glance(t.Context(), sql.GlanceOf{})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		l     *Lookout
		jobID int64
		want  bool
	}{
		"nobody has looked":      {&Lookout{}, 7, false},
		"there is no lookout":    {nil, 7, false},
		"there is none any more": {behold(none, 0), 40, true},
		"of this job":            {behold(some, 0), 7, false},
		"of this one too":        {behold(some, 0), 9, false},
		"of another":             {behold(some, 0), 10, true},
		"of another, cancelled":  {behold(some, 0), 3, true},
		"it was so, long ago":    {behold(none, 2*blind), 7, false},
	} {
		if got := c.l.NoBackfill(c.jobID); got != c.want {
			t.Errorf("%s: got %t, want %t", name, got, c.want)
		}
	}
}

// TestSighted: for a second a glance believes what the loops have seen themselves; then it looks again.
func TestSighted(t *testing.T) {
	f := setUp(t)
	f.exec("INSERT INTO task (job_id, due, due_now, hash) VALUES (1, 500, 500, 7)")
	f.exec("INSERT INTO job (app, name, hash, spec, next_due, created, updated) VALUES ('a', 'x', 7, '{}', 600, 1, 1)")
	l := &Lookout{DB: f.beside}
	check := func(what string, idle, cursor job.Micros) {
		t.Helper()
		g, err := l.DB.Glance(t.Context(), l.wanted())
		if err != nil {
			t.Fatal(err)
		}
		if g.FirstIdle != idle || g.FirstCursor != cursor {
			t.Errorf("%s: got first idle %d and cursor %d, want %d and %d", what, g.FirstIdle, g.FirstCursor, idle, cursor)
		}
	}
	check("nobody has seen anything", 500, 600)
	l.sawIdle(550)
	lasting := time.Now().Add(time.Minute) // for a machine that stalls
	l.idle.Store(&sighting{l.idle.Load().due, lasting})
	check("the claimer has seen a task", 550, 600)
	l.sawCursor(650)
	l.cursor.Store(&sighting{l.cursor.Load().due, lasting})
	check("the planner has more", 550, 650)
	l.idle.Store(&sighting{550, time.Now().Add(-2 * sighted)})
	check("what the claimer has seen is old", 500, 650)
	l.cursor.Store(&sighting{650, time.Now().Add(-2 * sighted)})
	check("all is old", 500, 600)
	(*Lookout)(nil).sawIdle(1) // as a claimer of tests has it
	(*Lookout)(nil).sawCursor(1)
}

// TestLookoutWakes: who has not seen what is new is woken, others are not.
func TestLookoutWakes(t *testing.T) {
	for name, c := range map[string]struct {
		before       *glimpse
		now          sql.Glance
		tasks, peers bool
	}{
		"the first glance":              {nil, sql.Glance{FirstIdle: 5, Sessions: 1}, false, false},
		"nothing is new":                {&glimpse{Glance: sql.Glance{FirstIdle: 5, Sessions: 1}}, sql.Glance{FirstIdle: 5, Sessions: 1}, false, false},
		"a first task":                  {&glimpse{}, sql.Glance{FirstIdle: 5}, true, false},
		"an earlier task":               {&glimpse{Glance: sql.Glance{FirstIdle: 5}}, sql.Glance{FirstIdle: 4}, true, false},
		"the earliest task was claimed": {&glimpse{Glance: sql.Glance{FirstIdle: 5}}, sql.Glance{FirstIdle: 6}, false, false},
		"the last task was claimed":     {&glimpse{Glance: sql.Glance{FirstIdle: 5}}, sql.Glance{}, false, false},
		"a session came":                {&glimpse{Glance: sql.Glance{Sessions: 1 << 32}}, sql.Glance{Sessions: 2 << 32}, false, true},
		"a node was cordoned":           {&glimpse{Glance: sql.Glance{Sessions: 1<<32 | 1}}, sql.Glance{Sessions: 1<<32 | 2}, false, true},
	} {
		var tasks, peers bool
		l := &Lookout{Tasks: func() { tasks = true }, Peers: func() { peers = true }}
		if l.tell(c.before, c.now); tasks != c.tasks || peers != c.peers {
			t.Errorf("%s: woke for tasks %t, for peers %t; want %t, %t", name, tasks, peers, c.tasks, c.peers)
		}
		(&Lookout{}).tell(c.before, c.now) // nobody asks
	}
}

func behold(g sql.Glance, ago time.Duration) *Lookout {
	l := &Lookout{}
	l.last.Store(&glimpse{g, time.Now().Add(-ago)})
	return l
}
