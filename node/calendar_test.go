package node_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"go-crontab/job"
	"go-crontab/node"
	"go-crontab/schedule/edit"
)

// TestCalendarChangesHoldEverywhere closes and opens the calendar of frequent jobs on one node
// while another node starts them; then the first node leaves at once.
func TestCalendarChangesHoldEverywhere(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	ledger := newLedger()
	with := func(cfg *node.Config) { cfg.Executor = ledger }
	stays := c.start("stays", with)
	put := func(m *member, days ...job.CalendarDay) time.Time {
		t.Helper()
		if _, err := m.Editor().PutCalendar(t.Context(), job.CalendarSpec{Name: "c", Exclude: days},
			edit.AnyVersion); err != nil {
			t.Fatal(err)
		}
		return m.Now()
	}

	put(stays)
	for _, name := range []string{"a", "b", "c"} {
		stays.create(job.Spec{
			Name: name, Every: job.Duration(100 * time.Millisecond), Overlap: job.OverlapAllow,
			Calendars: []string{"c"},
		})
	}

	// after counts the due times later than an instant that were started.
	after := func(at time.Time) (n int) {
		ledger.mu.Lock()
		defer ledger.mu.Unlock()
		for run := range ledger.runs {
			if due, _ := strconv.ParseInt(run[strings.IndexByte(run, ' ')+1:], 10, 64); due > at.UnixMicro() {
				n++
			}
		}
		return n
	}

	began := stays.Now()
	stays.await("runs", 15*time.Second, func() bool { return after(began) > 20 })

	leaves := c.start("leaves", with)
	everyDay := job.CalendarDay{Date: "01-01", End: "12-31"}
	closed := put(leaves, everyDay)
	if n := after(closed); n != 0 {
		t.Errorf("%d due times were started before they were due", n)
	}

	leaves.drain()
	if n := c.count("SELECT COUNT(*) FROM run WHERE state <> 'ended' AND due > ?",
		closed.Add(2*time.Second).UnixMicro()); n != 0 {
		t.Errorf("%d due times are still planned that are closed", n)
	}

	time.Sleep(time.Second)
	if n := after(closed); n != 0 {
		t.Errorf("%d due times were started that are closed", n)
	}

	opened := put(stays)
	stays.await("runs again", 15*time.Second, func() bool { return after(opened) > 20 })
	if _, doubles := ledger.counts(); doubles > 0 {
		t.Errorf("%d due times were started twice", doubles)
	}
	if n := c.count("SELECT COUNT(*) FROM job WHERE error <> ''"); n != 0 {
		t.Errorf("%d jobs are in error", n)
	}
}
