package session

import (
	"context"
	"log/slog"
	"time"

	"go-crontab/job"
	"go-crontab/sql"
)

// Orders looks for what people want of this session's executing tasks: that they are killed, or that a later due
// time takes their place. They may say so on any node; no node needs to reach another.
type Orders struct {
	DB      *sql.DB
	Session *Session
	Busy    func() bool // does anything execute?
	Kill    func(l job.Launch, replaced bool)
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
		kills, err := o.DB.KillsRequested(ctx, o.Session.id)
		if err != nil && ctx.Err() == nil {
			o.Log.Warn("cannot read who is to be killed, trying again", "error", err)
		}
		for _, k := range kills {
			o.Kill(k.Launch, k.Replaced) // again and again until it is over: that does no harm
		}
	}
}
