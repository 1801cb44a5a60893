package schedule

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go-crontab/job"
	"go-crontab/sql"
	"go-crontab/sql/trip"
)

// asidePause is how long a run rests after MySQL has refused its start because of a value in a
// row. MySQL would refuse an immediate second try, too.
const asidePause = 30 * time.Second

// aside remembers runs whose start MySQL has refused. For a while, the look for overdue runs skips
// these runs.
type aside struct {
	mu    sync.Mutex
	until map[int64]job.Micros // by run
}

func (a *aside) put(run int64, until job.Micros) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.until == nil {
		a.until = map[int64]job.Micros{}
	}
	a.until[run] = until
}

// rests reports whether a run is set aside at an instant.
func (a *aside) rests(run int64, now job.Micros) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	until, is := a.until[run]
	if is && now >= until {
		delete(a.until, run)
	}
	return is && now < until
}

// decideHalves decides on runs in one transaction. If MySQL refuses a value in some row,
// decideHalves tries each half by itself, until the bad run is alone. It sets that run aside.
func (s *Starter) decideHalves(
	ctx context.Context, runs []trip.Run, holders map[int64]trip.Owner, now job.Micros,
) ([]verdict, error) {
	verdicts, err := s.decide(ctx, runs, holders, now)
	switch {
	case err == nil || !sql.BlamesRows(err):
		return verdicts, err
	case len(runs) == 1:
		r := &runs[0]
		s.Log.Error("MySQL rejects the start of a run, trying again later",
			"run", r.Launch, "job", s.Definitions.Name(r.JobID), "due", r.Due, "error", err)
		s.Prepared.Return(*r, now.Add(asidePause))
		s.aside.put(r.Run, now.Add(asidePause))
		return nil, nil
	}

	half := len(runs) / 2
	one, failed := s.decideHalves(ctx, runs[:half], holders, now)
	two, err := s.decideHalves(ctx, runs[half:], holders, now)
	return append(one, two...), errors.Join(failed, err)
}

// writeHalves claims jobs in one transaction. If MySQL refuses a value in some row, writeHalves
// tries each half by itself, until the bad job is alone. That job gets no due times until it is
// edited.
func (c *Claimer) writeHalves(ctx context.Context, plans []plan, now job.Micros) error {
	err := c.write(ctx, plans, now)
	switch {
	case err == nil || !sql.BlamesRows(err):
		return err
	case len(plans) == 1:
		p := plans[0]
		if p.broken != nil { // even the error cannot be written
			return err
		}
		p.broken, p.dueTimes = fmt.Errorf("MySQL rejects its due times: %w", err), dueTimes{}
		return c.write(ctx, []plan{p}, now)
	}

	half := len(plans) / 2
	return errors.Join(c.writeHalves(ctx, plans[:half], now), c.writeHalves(ctx, plans[half:], now))
}
