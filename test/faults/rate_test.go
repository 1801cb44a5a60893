//go:build faults

package faults

import (
	"context"
	"fmt"
	"slices"
	"syscall"
	"testing"
	"time"

	"go-crontab/internal/privatedb"
	"go-crontab/job"
	"go-crontab/test/ledger"
)

// TestF58RateOfGroup: whatever fails, no more processes of a group begin in any period than its
// rate admits, and no due time is lost or runs twice.
func TestF58RateOfGroup(t *testing.T) {
	t.Parallel()

	r := scenario(t, "F58", "a group with a rate: kill -9 of a node, kill -9 of MySQL, SIGSTOP of a node")
	c := newServer(r, privatedb.Options{})
	c.expiry = 12 * time.Second
	c.start(3)

	const rate, period = 70, 20 * time.Second
	if a := c.nodes[0].ask("PUT", "/api/v1/groups/metered", object{"rate": fmt.Sprintf("%d/%s", rate, period)}); a.code != 200 {
		t.Fatalf("the group: %d %s", a.code, a.body)
	}

	l := c.load()
	l.limit, l.patient = time.Minute, true
	for i := range 26 {
		l.add(fmt.Sprint("metered-", i), 10*time.Second, object{
			"command": l.book.Command(20*time.Millisecond, 0), "overlap": "allow", "group": "metered", "queue": 1000,
		})
	}

	for range times(1, 5) {
		time.Sleep(15 * time.Second)
		m := c.nodes[c.rng.IntN(len(c.nodes))]
		session := m.session()
		m.kill()
		c.buried(session, c.expiry+10*time.Second)
		m.start()
		m.ready(30 * time.Second)

		time.Sleep(5 * time.Second)
		if err := c.server.Kill(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(4 * time.Second)
		if err := c.server.Restart(context.Background()); err != nil {
			t.Fatal(err)
		}
		c.together(30 * time.Second)

		time.Sleep(8 * time.Second)
		m = c.nodes[c.rng.IntN(len(c.nodes))]
		m.signal(syscall.SIGSTOP)
		time.Sleep(4 * time.Second)
		m.signal(syscall.SIGCONT)
	}

	time.Sleep(10 * time.Second)
	waited := c.count("SELECT COUNT(*) FROM run WHERE started > due + 2000000")
	l.check(0)
	l.checkRate(rate, period)
	r.figure("%d runs had waited for 2 s or longer", waited)
	if waited == 0 {
		t.Error("no run has waited, so the rate was not tried")
	}
	if n := c.count("SELECT COUNT(*) FROM run WHERE state = 'waiting'") + c.count("SELECT taken FROM grp"); n > 10 {
		t.Errorf("%d runs wait or hold slots at the end", n)
	}
}

// checkRate checks that so many and no more processes have begun in any period.
func (l *load) checkRate(rate int, period time.Duration) {
	l.c.t.Helper()
	entries, err := l.book.Entries()
	if err != nil {
		l.c.t.Fatal(err)
	}

	var begun []job.Micros
	for _, e := range entries {
		if e.Kind == ledger.Start {
			begun = append(begun, e.At)
		}
	}
	slices.Sort(begun)

	most := 0
	for i, first := 0, 0; i < len(begun); i++ {
		for begun[i].Sub(begun[first]) >= period {
			first++
		}
		most = max(most, i-first+1)
	}
	l.c.r.figure("at most %d processes began within %s, the rate is %d", most, period, rate)
	if most > rate {
		l.c.t.Errorf("%d processes began within %s, the rate is %d", most, period, rate)
	}
	if most < rate*8/10 {
		l.c.t.Errorf("at most %d processes began within %s: the rate of %d was not tried", most, period, rate)
	}
}
