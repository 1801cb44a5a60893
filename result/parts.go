package result

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"go-crontab/internal/loop"
	"go-crontab/job"
	"go-crontab/sql"
	"go-crontab/sql/trip"
)

// Parts writes the middle of large outputs: the kept output between head and tail. It begins when
// the run has ended, and writes each part in its own transaction. So a large output does not delay
// the end of its run.
//
//	temporary file ──part by part──▶ compress ──▶ table output_part
//
// The end of the run, when written, has announced the parts. If we die before the parts are
// written, or MySQL is away for too long, the output has a gap there. Readers see the length of
// the gap.
type Parts struct {
	db   *sql.DB
	log  *slog.Logger
	ctx  context.Context // of all writers
	stop context.CancelFunc

	mu      sync.Mutex
	waiting int
	closed  bool
	writers sync.WaitGroup
	turn    chan struct{} // held to read, compress and write parts
}

const (
	// partsMost bounds the outputs that wait, and so the number of temporary files.
	partsMost = 64
	// partWriters bounds the parts in memory: each writer holds one part and its compressed form.
	partWriters = 2
)

// NewParts returns a Parts that can be used at once.
func NewParts(db *sql.DB, log *slog.Logger) *Parts {
	p := &Parts{db: db, log: log, turn: make(chan struct{}, partWriters)}
	p.ctx, p.stop = context.WithCancel(context.Background())
	return p
}

// Take takes over the rest of an output, before the end of its run is queued. If too many outputs
// already wait, Take drops the rest.
func (p *Parts) Take(l trip.Launch, o *job.Output) {
	rest := o.Rest
	if o.Rest = nil; rest == nil {
		return
	}

	p.mu.Lock()
	taken := !p.closed && p.waiting < partsMost
	if taken {
		p.waiting++
		p.writers.Add(1)
	}
	p.mu.Unlock()

	if !taken {
		rest.Close()
		o.Parts, o.PartBytes = 0, 0
		p.log.Warn("a large output is kept only in part: too many others wait to be written", "run", l)
		return
	}
	go p.write(l, rest)
}

// Close makes Parts take no more outputs. It waits for the outputs already taken. When ctx ends,
// it gives up the outputs that are not written yet.
func (p *Parts) Close(ctx context.Context) {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()

	done := make(chan struct{})
	go func() {
		defer close(done)
		p.writers.Wait()
	}()
	select {
	case <-done:
	case <-ctx.Done():
	}
	p.stop()
	<-done
}

func (p *Parts) write(l trip.Launch, rest job.Rest) {
	defer func() {
		rest.Close()
		p.mu.Lock()
		p.waiting--
		p.mu.Unlock()
		p.writers.Done()
	}()

	ctx, cancel := context.WithTimeout(p.ctx, trip.PartPatience)
	defer cancel()
	switch err := p.putAll(ctx, l, rest); {
	case errors.Is(err, errPartGone):
		p.log.Info("the rest of a large output is not stored", "run", l, "reason", err)
	case err != nil:
		p.log.Warn("a large output is stored only in part", "run", l, "error", err)
	}
}

// Reasons why a part is not written.
var (
	errPartEarly = errors.New("the end of the run is not written yet")
	errPartGone  = errors.New("another node has ended the run, or its output was removed")
)

// Pauses between tries to write the parts of an output.
const (
	partPause     = 50 * time.Millisecond
	partPauseMost = 5 * time.Second
)

// putAll writes all parts. It retries while the run's end is not written yet, or MySQL is away.
func (p *Parts) putAll(ctx context.Context, l trip.Launch, rest job.Rest) error {
	written := int64(0) // parts before this offset are stored
	for pause := partPause; ; pause = min(2*pause, partPauseMost) {
		again, err := p.try(ctx, l, rest, &written)
		if !again {
			return err
		}

		select {
		case <-ctx.Done():
			return err
		case <-time.After(pause/2 + loop.Jitter(pause)):
		}
	}
}

// try writes the parts from an offset on, up to the first failure. It reports whether another try
// may succeed. Between tries, nothing of the output is in memory.
func (p *Parts) try(ctx context.Context, l trip.Launch, rest job.Rest, written *int64) (again bool, err error) {
	select {
	case p.turn <- struct{}{}:
		defer func() { <-p.turn }()
	case <-ctx.Done():
		return false, context.Cause(ctx)
	}

	err = rest.Pieces(func(part job.Piece) error {
		if part.At < *written {
			return nil
		}
		if err := p.put(ctx, l, part); err != nil {
			again = !errors.Is(err, errPartGone)
			return err
		}
		*written = part.End()
		return nil
	})
	return again, err
}

// put writes a part. An unknown commit is a failure: writing the part again does no harm.
func (p *Parts) put(ctx context.Context, l trip.Launch, part job.Piece) error {
	state := trip.PartEarly
	data, encoding := job.PackPart(part.Data)
	err := p.db.Tx(ctx, func(tx *sql.Tx) (err error) {
		state, err = trip.PutPart(tx, l, part, data, encoding)
		return err
	})
	switch {
	case err != nil:
		return err
	case state == trip.PartEarly:
		return errPartEarly
	case state == trip.PartGone:
		return errPartGone
	}
	return nil
}
