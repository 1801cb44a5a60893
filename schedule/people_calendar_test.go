package schedule

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"go-crontab/job"
	"go-crontab/schedule/edit"
	"go-crontab/sql"
	"go-crontab/test/faultproxy"
)

// closed makes a calendar that is closed in the given minutes after t0.
func closed(name string, minutes ...int) job.CalendarSpec {
	c := job.CalendarSpec{Name: name, Timezone: "UTC"}
	for _, m := range minutes {
		c.Hours.Except = append(c.Hours.Except, fmt.Sprintf("12:%02d-12:%02d", m, m+1))
	}
	return c
}

func (p *person) puts(c job.CalendarSpec) bool {
	p.Helper()
	isNew, err := p.PutCalendar(p.ctx, c, edit.AnyVersion)
	if err != nil {
		p.Fatal(err)
	}
	return isNew
}

// withCalendar makes a job that is due every 30 s while its calendar is open.
func (p *person) withCalendar(name, calendar string) int64 {
	spec := ofEvery(name, 30)
	spec.Calendars = []string{calendar}
	return p.creates(spec)
}

// TestCalendarChange: a change of a calendar moves only the cursors of jobs that name it.
func TestCalendarChange(t *testing.T) {
	c := newCluster(t)
	p, m := c.person(c.dsn), c.member(1, c.dsn)
	if !p.puts(closed("c", 0)) {
		t.Error("the calendar is not new")
	}
	id := p.withCalendar("j", "c")
	p.must(p.Pause(p.ctx, p.withCalendar("paused", "c"), job.PauseRequest{}))
	other := ofEvery("other", 30)
	other.Overlap = job.OverlapAllow
	p.creates(other)
	c.wantJobs("closed in the first minute", "j 1 1 next 60.0000", "other 1 1 next 30.0000", "paused 1 2 parked 60.0000 paused")
	m.claims(55)
	c.want("claimed", c.rows("SELECT DISTINCT j.name FROM run r JOIN job j ON j.id = r.job_id WHERE r.due > ?", int64(t0)+31_000_000), "j", "other")

	if p.at(58).puts(closed("c", 1)) {
		t.Error("the calendar is new")
	}
	c.wantJobs("closed in the second minute", "j 2 2 next 120.0000", "other 1 1 next 90.0000", "paused 2 3 parked 120.0000 paused")
	p.puts(closed("c", 1)) // changes nothing
	m.claims(58)
	c.want("nothing of it starts", m.starts(60), "other@30", "other@60")
	m.claims(119)
	c.want("but then", m.starts(120), "j@120", "other@120", "other@90")
	p.must(p.at(121).Update(p.ctx, id, 2, ofEvery("j", 30)))
	p.puts(closed("c", 5))
	c.wantJobs("without a calendar", "j 3 3 next 150.0000", "other 1 1 next 150.0000", "paused 3 4 parked 120.0000 paused")
	c.want("audit", c.rows("SELECT CONCAT_WS(' ', action, kind, name) FROM audit WHERE kind = 'calendar' ORDER BY id"),
		"create calendar c", "update calendar c", "update calendar c")
}

// TestCalendarVersions: a change based on an outdated version is refused. A calendar in use cannot
// be deleted.
func TestCalendarVersions(t *testing.T) {
	c := newCluster(t)
	p := c.person(c.dsn)
	p.puts(closed("c", 0))
	p.puts(closed("c", 1))
	if _, err := p.PutCalendar(p.ctx, closed("c", 2), 1); !errors.Is(err, job.ErrChanged) {
		t.Errorf("at an old version: got %v, want job.ErrChanged", err)
	}
	if _, err := p.PutCalendar(p.ctx, closed("c", 2), edit.NoVersion); !errors.Is(err, sql.ErrExists) {
		t.Errorf("as a new one: got %v, want sql.ErrExists", err)
	}

	id := p.withCalendar("j", "c")
	if err := p.DeleteCalendar(p.ctx, "c"); !errors.As(err, new(*job.InUse)) {
		t.Errorf("deleted while in use: got %v, want job.InUse", err)
	}

	p.must(p.Delete(p.ctx, id))
	if err := p.DeleteCalendar(p.ctx, "c"); err != nil {
		t.Error(err)
	}

	spec := ofEvery("k", 30)
	spec.Calendars = []string{"c"}
	if _, err := p.Create(p.ctx, spec, false); !errors.As(err, new(job.Problems)) {
		t.Errorf("a job that names no calendar: got %v, want job.Problems", err)
	}
}

// TestCalendarChangesInBetween: if a calendar changes after a claim has computed due times by it,
// the claim writes nothing.
func TestCalendarChangesInBetween(t *testing.T) {
	c := newCluster(t)
	p, m := c.person(c.dsn), c.member(1, c.dsn)
	p.puts(closed("c", 5))
	p.withCalendar("j", "c")
	x := &chaos{cluster: c, now: m.at(25), members: []*member{m}, plans: make([][]plan, 1)}
	x.computes(0)
	p.at(25).puts(closed("c", 0))
	x.writes(0)
	c.want("runs", c.rows(allRuns, int64(t0)))
	c.wantJobs("cursor", "j 2 2 next 60.0000")
}

// TestUnknownCommitOfACalendar: a change of a calendar with an unknown commit is made once.
func TestUnknownCommitOfACalendar(t *testing.T) {
	for name, action := range map[string]faultproxy.Action{"the reply is lost": faultproxy.CutAfter(), "the commit never arrives": faultproxy.CutBefore()} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			dsn, proxy := c.proxied()
			p := c.person(dsn)
			p.puts(closed("c", 5))
			p.withCalendar("j", "c")
			proxy.Add(faultproxy.Rule{Match: faultproxy.CommitOf("UPDATE calendar"), Action: action})
			p.puts(closed("c", 0))
			c.wantJobs("job", "j 2 2 next 60.0000")
			c.want("lines of the audit", c.rows("SELECT COUNT(*) FROM audit WHERE kind = 'calendar' AND action = 'update'"), "1")
		})
	}
}

// TestEditInBetween: if a job changes after a claim has computed its due times, the claim writes
// nothing, even if the cursor is the same (rule C).
func TestEditInBetween(t *testing.T) {
	c := newCluster(t)
	p, m := c.person(c.dsn), c.member(1, c.dsn)
	id := p.creates(ofEvery("j", 4))
	x := &chaos{cluster: c, now: m.at(1), members: []*member{m}, plans: make([][]plan, 1)}
	x.computes(0)
	spec := ofEvery("j", 8)
	start := t0.Time().Add(4 * time.Second)
	spec.Start = &start
	p.must(p.at(1).Update(p.ctx, id, 0, spec))
	c.wantJobs("the same cursor", "j 2 2 next 4.0000")
	x.writes(0)
	c.want("runs", c.rows(allRuns, int64(t0)))
}
