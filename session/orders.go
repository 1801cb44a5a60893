package session

import (
	"context"
	"log/slog"
	"time"

	"go-crontab/job"
	"go-crontab/sql"
)

// Orders looks for what people want of this session's executing tasks: that they are killed. They may say so on any
// node; no node needs to reach another.
type Orders struct {
	DB      *sql.DB
	Session *Session
	Busy    func() bool // does anything execute?
	Kill    func(job.Launch)
	Log     *slog.Logger
}

// Run looks until ctx ends. A session that executes nothing asks nothing.
func (o *Orders) Run(ctx context.Context) error {
	tick := time.NewTicker(o.Session.Timings.Scan)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
		if !o.Busy() {
			continue
		}
		launches, err := o.DB.KillsRequested(ctx, o.Session.id)
		if err != nil && ctx.Err() == nil {
			o.Log.Warn("read orders", "error", err)
		}
		for _, n := range launches {
			o.Kill(job.Launch{Session: o.Session.id, N: n}) // again and again until it is over: that does no harm
		}
	}
}
