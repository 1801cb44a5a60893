package node_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go-crontab/execute"
	"go-crontab/job"
	"go-crontab/node"
	"go-crontab/test/faultproxy"
)

// beside combines one kind of trouble with healthy jobs. The first node is connected through the
// proxy.
type beside struct {
	*cluster
	one, two *member
	proxy    *faultproxy.Proxy
	run      *ledger
}

const (
	healthyJobs = 20
	// startsWithin bounds the lateness of healthy jobs during any trouble, on a quiet machine.
	startsWithin = 5 * time.Second
	besideFor    = 12 * time.Second
)

// TestHealthyJobsBesideTrouble: whatever happens to one node, job or row, unrelated jobs start in
// time, each due time once. The test also checks during the trouble that no run stays prepared or
// idle long after its due time.
func TestHealthyJobsBesideTrouble(t *testing.T) {
	t.Parallel()
	for name, trouble := range map[string]func(b *beside){
		"F48 transactions of a node fail, its beats pass": func(b *beside) {
			b.proxy.Add(faultproxy.Rule{
				Match:  func(c faultproxy.Command) bool { return c.IsStatement() && !isBeat(c) && !isClock(c) },
				Action: faultproxy.CutBefore(), Times: -1,
			})
		},
		"F50 expensive schedules":                                (*beside).expensiveSchedules,
		"F51 large definitions that are due at one instant":      (*beside).largeDefinitions,
		"F52 rows that somebody keeps locked, while a node dies": (*beside).keepRows,
		"F53 a life shorter than a look":                         (*beside).shortLives,
		"F56 full queues":                                        (*beside).fullQueues,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server, c := newServer(t)
			c.expiry = expiry
			b := &beside{cluster: c, run: newLedger()}
			b.run.took = func(a execute.Attempt) time.Duration {
				if strings.HasPrefix(a.Job, "queue-") || a.Job == "kept" {
					return 2 * time.Second
				}
				return 0
			}

			b.one, b.proxy = c.behind(server, "one", b.run, 200)
			b.two = c.start("two", func(cfg *node.Config) { cfg.Executor, cfg.Slots = b.run, 200 })
			jobs := c.everySecond(healthyJobs, b.two.Now().Add(2*time.Second), time.Second)
			b.two.await("healthy jobs start", 10*time.Second, func() bool {
				return c.count("SELECT COUNT(*) FROM run WHERE state = 'ended'") > healthyJobs
			})

			stop := b.watch()
			began := b.two.Now()
			trouble(b)
			time.Sleep(besideFor)
			until := b.two.Now().Add(-startsWithin)
			if late := stop(); late > 4*startsWithin {
				t.Errorf("a run was due %s ago and had not begun", late)
			}

			b.proxy.Heal()
			await(t, "healthy due times ended", 20*time.Second, func() bool {
				return c.count(`
					SELECT COUNT(*)
					FROM run r
					JOIN job j ON j.id = r.job_id
					WHERE r.state <> 'ended' AND r.due < ? AND j.name LIKE 'job-%'`,
					until.UnixMicro()) == 0
			})

			got := account(t, c, b.run, jobs, until)
			late := c.count(`
				SELECT COALESCE(MAX(CAST(started AS SIGNED) - due), 0)
				FROM run r
				JOIN job j ON j.id = r.job_id
				WHERE j.name LIKE 'job-%' AND r.due BETWEEN ? AND ? AND started > 0`, began.UnixMicro(),
				until.UnixMicro())

			t.Logf("outcomes %v, latest start %s", got, time.Duration(late)*time.Microsecond)
			if time.Duration(late)*time.Microsecond > 4*startsWithin {
				t.Errorf("a healthy job started %s late", time.Duration(late)*time.Microsecond)
			}
			if got[job.Missed] > 0 {
				t.Errorf("%d due times of healthy jobs were missed", got[job.Missed])
			}
		})
	}
}

// Statements of the connection for beats.
var (
	isBeat  = faultproxy.SQL("UPDATE session SET beat")
	isClock = faultproxy.SQL("^SELECT CAST\\(UNIX_TIMESTAMP")
)

// watch checks four times a second for healthy runs that are due and have not begun. The function
// that it returns stops that, and returns the greatest lateness.
func (b *beside) watch() (stop func() time.Duration) {
	const query = `
		SELECT COALESCE(MAX(CAST(UNIX_TIMESTAMP(NOW(6)) * 1000000 AS SIGNED) - r.due_now), 0)
		FROM run r FORCE INDEX (live)
		JOIN job j ON j.id = r.job_id
		WHERE r.owner >= 0 AND r.state IN ('idle', 'prepared') AND j.name LIKE 'job-%'`
	looking, cancel := context.WithCancel(context.Background())
	b.t.Cleanup(cancel)
	found := make(chan time.Duration, 1)
	go func() {
		latest := time.Duration(0)
		for looking.Err() == nil {
			var late int64
			if b.db.Raw().QueryRowContext(looking, query).Scan(&late) == nil {
				latest = max(latest, time.Duration(late)*time.Microsecond)
			}
			select {
			case <-looking.Done():
			case <-time.After(250 * time.Millisecond):
			}
		}

		found <- latest
	}()

	return func() time.Duration { cancel(); return <-found }
}

// largeDefinitions makes 300 jobs with definitions of 120 KiB, all due at one instant.
func (b *beside) largeDefinitions() {
	at := b.two.Now().Add(5 * time.Second).Truncate(time.Second)
	text := strings.Repeat("0123456789abcdef", 60<<10/16)
	specs := make([]job.Spec, 300)
	for i := range specs {
		specs[i] = job.Spec{
			Name: fmt.Sprint("large-", i), Every: job.Duration(time.Hour), Start: &at, Command: "true # " + text,
		}
		specs[i].Stdin = text
	}

	for part := range slices.Chunk(specs, 50) {
		b.insert(part...)
	}
}

// expensiveSchedules makes jobs whose due times cost seconds of processor time: each second since
// 1971, filtered by eight calendars.
func (b *beside) expensiveSchedules() {
	var names []string
	for c := range 8 {
		var closed []string
		for at := range 90 {
			minute := at*16 + 2*c
			closed = append(closed, fmt.Sprintf("%02d:%02d-%02d:%02d", minute/60, minute%60, minute/60, minute%60+1))
		}

		name := fmt.Sprint("windows-", c)
		spec := job.CalendarSpec{
			Name: name, Timezone: "UTC", Hours: job.CalendarHours{Except: []string{strings.Join(closed, ",")}},
		}
		if _, err := b.two.Editor().PutCalendar(b.t.Context(), spec, 0); err != nil {
			b.t.Fatal(err)
		}

		names = append(names, name)
	}

	for i := range 20 { // the API refuses such a job, so its definition is changed by hand
		b.two.create(job.Spec{Name: fmt.Sprint("costly-", i), Schedule: "0 0 0 1 1 *", Calendars: names})
	}

	b.exec(`
		UPDATE job_version v
		JOIN job j ON j.id = v.job_id
		SET v.definition = JSON_SET(v.definition,
			'$.schedule', '* * * * * *', '$.start', '1971-01-01T00:00:00Z', '$.max_fires', 1000000000)
		WHERE j.name LIKE 'costly-%'`)

	b.exec("UPDATE job SET next_due = ? WHERE name LIKE 'costly-%'", b.two.Now().UnixMicro())
}

// keepRows locks rows of one job for a while, and lets a node die that owns runs of that job and of
// others.
func (b *beside) keepRows() {
	b.two.create(job.Spec{Name: "kept", Every: job.Duration(time.Second)}) // its runs take a while
	b.two.await("the kept job runs", 10*time.Second, func() bool {
		return b.count("SELECT COUNT(*) FROM run r JOIN job j ON j.id = r.job_id WHERE j.name = 'kept'") > 0
	})
	tx, err := b.db.Raw().Begin()
	if err != nil {
		b.t.Fatal(err)
	}

	b.t.Cleanup(func() { tx.Rollback() })
	job := b.count("SELECT id FROM job WHERE name = 'kept'")
	run := b.count("SELECT MAX(id) FROM run WHERE job_id = ? AND state <> 'ended'", job)
	for statement, id := range map[string]int{
		"SELECT id FROM job FORCE INDEX (PRIMARY) WHERE id = ? FOR UPDATE": job,
		"SELECT id FROM run FORCE INDEX (PRIMARY) WHERE id = ? FOR UPDATE": run,
	} {
		if _, err := tx.Exec(statement, id); err != nil {
			b.t.Fatal(err)
		}
	}

	b.proxy.Refuse()
	b.proxy.CutAll()
}

// shortLives lets nodes join that claim runs and disappear within a second.
func (b *beside) shortLives() {
	for i := range 3 {
		m := b.start(fmt.Sprint("brief-", i), func(cfg *node.Config) { cfg.Executor = b.run })
		time.Sleep(500 * time.Millisecond)
		m.hard()
		m.drain()
	}
}

// fullQueues makes 20 jobs whose queues grow by nearly ten runs a second each.
func (b *beside) fullQueues() {
	for i := range 20 {
		spec := job.Spec{
			Name: fmt.Sprint("queue-", i), Every: job.Duration(100 * time.Millisecond),
			Overlap: job.OverlapQueue, Queue: 1000,
		}
		b.two.create(spec)
	}
}
