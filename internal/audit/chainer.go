package audit

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"go-crontab/internal/trail"
	"go-crontab/job"
	"go-crontab/sql"
)

// Session is what a chainer needs to know of the session of its node.
type Session interface {
	Share() (index, of int)
	Fresh() bool
	Now() job.Micros
}

// Chainer adds audit lines to the chain of hashes. The first node of the cluster does it. While two nodes think that they are
// the first, the primary key of the chain lets one of them through.
type Chainer struct {
	DB      *sql.DB
	Session Session
	Newest  func() (line int64, known bool) // id of the newest audit line, a moment ago
	Log     *slog.Logger

	seen    trail.Trail // audit lines that were looked at
	pending []int64     // those of them that were not chained
	swept   time.Time   // when the last sweep over all lines began; zero: none has
	looked  time.Time   // when it looked for lines last
	told    time.Time   // when the head was logged
	toldSeq int64
}

const (
	chainPeriod = time.Second
	// sweepPeriod is between looks at all lines. A sweep finds what a trail has given up, and costs an entry of two indexes a line.
	sweepPeriod = time.Hour
	// tellPeriod is between heads in the log.
	tellPeriod = time.Hour

	// gapPeriod is between looks for lines that were left out, while nothing is new.
	gapPeriod = 5 * time.Second

	lookBatch = 5000
	// linkBatch bounds one transaction. Lines are hashed one by one as they are read, so their length costs no memory.
	linkBatch = 200
)

// Run chains until ctx ends.
func (c *Chainer) Run(ctx context.Context) error {
	tick := time.NewTicker(chainPeriod)
	defer tick.Stop()
	for {
		if err := c.step(ctx, time.Now()); err != nil && ctx.Err() == nil && !errors.Is(err, sql.ErrMoved) {
			c.Log.Warn("cannot chain the audit, trying again", "error", err)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
}

// step chains what there is, unless this is another node's chore.
func (c *Chainer) step(ctx context.Context, at time.Time) error {
	if index, of := c.Session.Share(); index > 0 || index < 0 && of > 0 || !c.Session.Fresh() {
		c.swept = time.Time{} // whoever takes the chore over begins with a sweep
		return nil
	}
	if c.swept.IsZero() || at.Sub(c.swept) > sweepPeriod {
		c.seen, c.pending, c.swept = trail.Trail{Patience: c.DB.LongestTransaction()}, nil, at
	}

	for ctx.Err() == nil && !c.idle(at) {
		more, err := c.look(ctx, at)
		if err != nil {
			return err
		}
		if err := c.extend(ctx, at); err != nil || !more {
			return err
		}
	}
	return nil
}

// idle reports that there is nothing to read now: the newest line was seen, and all that were seen are chained.
func (c *Chainer) idle(at time.Time) bool {
	newest, known := c.Newest()
	seen := known && newest <= c.seen.High && len(c.pending) == 0 && !c.looked.Before(c.swept)
	return seen && (len(c.seen.Gaps) == 0 || at.Sub(c.looked) < gapPeriod)
}

// look reads which lines are not chained yet, and reports whether there may be more.
func (c *Chainer) look(ctx context.Context, at time.Time) (more bool, err error) {
	now, next := c.Session.Now(), c.seen.Clone()
	lines, fresh, _, err := trail.Follow(&next, now, func(l *chainedLine) int64 { return l.ID },
		func(spans []sql.Span) ([]chainedLine, error) { return chainedIn(c.DB.Reader(ctx), spans) },
		func(after int64) ([]chainedLine, error) { return chainedAfter(c.DB.Reader(ctx), after, lookBatch) })
	if err != nil {
		return false, err
	}

	// No transaction that was given an id before such an old line can still commit.
	if fresh > 0 && lines[len(lines)-1].At.Add(next.Patience) < now {
		next.Gaps = nil
	}
	c.seen, c.looked = next, at
	for _, l := range lines {
		if !l.Chained {
			c.pending = append(c.pending, l.ID)
		}
	}
	return fresh == lookBatch, nil
}

// extend adds what is pending to the chain. What another node has chained meanwhile is left out by ExtendChain.
func (c *Chainer) extend(ctx context.Context, at time.Time) error {
	if len(c.pending) == 0 {
		return nil
	}
	head, err := Head(c.DB.Reader(ctx))
	for err == nil && len(c.pending) > 0 && ctx.Err() == nil {
		n := min(linkBatch, len(c.pending))
		if head, err = extend(ctx, c.DB, head, c.pending[:n]); err == nil {
			c.pending = c.pending[n:]
		}
	}
	if err == nil && head.Seq > c.toldSeq && at.Sub(c.told) >= tellPeriod {
		c.told, c.toldSeq = at, head.Seq
		c.Log.Info("audit chain", "head", head.Head())
	}
	return err
}
