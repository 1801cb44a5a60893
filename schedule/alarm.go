package schedule

import (
	"context"
	"sync/atomic"
	"time"

	"go-crontab/job"
	"go-crontab/sql/trip"
)

// Runs that wait for the rate of their group are woken by time. The group's row holds the next
// instant (grp.wake_at). Each look for overdue runs reads these rows, so any node can wake the
// runs. The node that wrote the instant also looks at exactly that instant.

// alarm is the next instant at which a group must be woken; zero: none is known.
type alarm struct{ at atomic.Int64 }

// set makes the alarm go off at an instant. An earlier alarm stays. set reports whether it changed
// the alarm.
func (a *alarm) set(at job.Micros) bool {
	for {
		was := a.at.Load()
		if at == 0 || was != 0 && job.Micros(was) <= at {
			return false
		}
		if a.at.CompareAndSwap(was, int64(at)) {
			return true
		}
	}
}

// clear removes an alarm that has gone off.
func (a *alarm) clear(now job.Micros) {
	if was := a.at.Load(); job.Micros(was) <= now {
		a.at.CompareAndSwap(was, 0)
	}
}

// pause shortens a pause so that it ends at the alarm.
func (a *alarm) pause(pause time.Duration, now job.Micros) time.Duration {
	if at := job.Micros(a.at.Load()); at != 0 {
		pause = min(pause, max(0, at.Sub(now)))
	}
	return pause
}

// setAlarm remembers when a group must be woken. It wakes the loop that looks for overdue runs if
// the loop's pause would end later.
func (s *Starter) setAlarm(at, now job.Micros) {
	if s.alarm.set(at) && at.Sub(now) < overduePeriod {
		s.WakeOverdue.Up()
	}
}

// firstWake returns the earliest instant at which one of the groups must be woken; zero: none.
func firstWake(groups []*trip.Group) (at job.Micros) {
	for _, g := range groups {
		if g.WakeAt != 0 && (at == 0 || g.WakeAt < at) {
			at = g.WakeAt
		}
	}
	return at
}

// wakeByTime wakes runs that wait for the rates of their groups, as many as the rates admit now. It
// returns their number. If we die before this, the next look of any node wakes them.
func (s *Starter) wakeByTime(ctx context.Context, now job.Micros) (woken int, err error) {
	s.alarm.clear(now)
	waking, err := trip.WakingBefore(s.DB.Reader(ctx), now.Add(overduePeriod))
	if err != nil {
		return 0, err
	}

	due := map[int32]bool{}
	for _, w := range waking {
		if w.At <= now {
			due[w.Group] = true
		} else {
			s.alarm.set(w.At)
		}
	}
	return s.passSlotsOn(ctx, due, now)
}
