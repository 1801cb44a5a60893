package audit

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"go-crontab/internal/loop"
	"go-crontab/internal/trail"
	"go-crontab/job"
	"go-crontab/sql"
)

// Session is the part of a node's session that a chainer needs.
type Session interface {
	Share() (index, of int) // the node with index 0 chains; see session.Session.Share
	Fresh() bool            // reports whether the lease is fresh
	Now() job.Micros        // by MySQL's clock
}

// ChainerConfig configures a chainer.
type ChainerConfig struct {
	DB      *sql.DB
	Session Session
	Lookout Lookout
	Log     *slog.Logger
}

// Lookout knows facts that one statement read a moment ago.
type Lookout interface {
	LastLine() (id int64, known bool) // id of the latest audit line
}

// Chainer adds audit lines to the hash chain. The first node of the cluster does this. If two
// nodes both believe that they are first, the primary key of the chain lets only one of them add
// links.
type Chainer struct {
	ChainerConfig

	seen    trail.Trail // the audit lines that were read
	pending []int64     // the unchained lines among them
	swept   time.Time   // start of the last sweep over all lines; zero: none yet
	looked  time.Time   // last look for lines
	told    time.Time   // when the head was last logged
	toldSeq int64
}

// NewChainer returns a chainer. The caller runs it.
func NewChainer(cfg ChainerConfig) *Chainer { return &Chainer{ChainerConfig: cfg} }

const (
	chainPeriod = time.Second
	// sweepPeriod is the pause between two sweeps over all lines. A sweep finds lines with ids
	// that the trail no longer looks for. It costs two index entries for each line.
	sweepPeriod = time.Hour
	// tellPeriod is the pause between two log lines with the head.
	tellPeriod = time.Hour

	// gapPeriod is the pause between two looks for missing ids while there are no new lines.
	gapPeriod = 5 * time.Second

	lookBatch = 5000
	// linkBatch bounds the lines of a transaction. Each line is hashed when it is read, so long
	// lines do not cost memory.
	linkBatch = 200
)

// Run chains until ctx ends.
func (c *Chainer) Run(ctx context.Context) error {
	return loop.Loop{
		Period: chainPeriod,
		AtRate: true,
		Log:    c.Log,
		Failed: "cannot chain the audit, trying again",
	}.Run(ctx, loop.Each(func(ctx context.Context) error {
		err := c.step(ctx, time.Now())
		if errors.Is(err, sql.ErrMoved) {
			return loop.ErrSkipped
		}
		return err
	}))
}

// step chains all unchained lines, unless this is another node's task.
func (c *Chainer) step(ctx context.Context, at time.Time) error {
	if index, of := c.Session.Share(); index > 0 || index < 0 && of > 0 || !c.Session.Fresh() {
		c.swept = time.Time{} // a node that takes over starts with a sweep
		return loop.ErrSkipped
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

// idle reports whether there is nothing to read now: the latest line was seen, and all lines that
// were seen are chained.
func (c *Chainer) idle(at time.Time) bool {
	newest, known := c.Lookout.LastLine()
	seen := known && newest <= c.seen.High && len(c.pending) == 0 && !c.looked.Before(c.swept)
	return seen && (len(c.seen.Gaps) == 0 || at.Sub(c.looked) < gapPeriod)
}

// look reads which lines are not chained yet. more reports whether there may be further lines.
func (c *Chainer) look(ctx context.Context, at time.Time) (more bool, err error) {
	now, next := c.Session.Now(), c.seen.Clone()
	lines, fresh, _, err := trail.Follow(&next, now, func(l *chainedLine) int64 { return l.ID },
		func(spans []sql.Span) ([]chainedLine, error) { return chainedIn(c.DB.Reader(ctx), spans) },
		func(after int64) ([]chainedLine, error) { return chainedAfter(c.DB.Reader(ctx), after, lookBatch) })
	if err != nil {
		return false, err
	}

	// The last line is old: all transactions that got their ids earlier have ended by now. So the
	// missing ids stay missing.
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

// extend chains the pending lines. The function extend skips lines that another node has chained.
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
