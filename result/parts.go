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
// the run has ended, and writes each part in a transaction of its own. So a large output does not
// delay the end of its run.
//
//	temporary file ──part by part──▶ compress ──▶ table output_part
//
// The written end of the run has announced the parts. If we die before they are written, or MySQL
// is away for too long, the output has a gap there, and readers see the length of the gap.
type Parts struct {
	db   *sql.DB
	log  *slog.Logger
	ctx  context.Context // of all writers
	stop context.CancelFunc

	mu      sync.Mutex
	waiting int
	closed  bool
	writers sync.WaitGroup
	turn    chan struct{} // held to compress and write
}

const (
	// partsMost bounds the outputs that wait, and with it the temporary files.
	partsMost = 64
	// partWriters bounds the parts in memory: each writer holds one part and its compressed form.
	partWriters = 2
	// partPatience is how long an output waits until the end of its run is written, or for MySQL.
	partPatience = 10 * time.Minute
)

// NewParts returns a Parts that can be used at once.
func NewParts(db *sql.DB, log *slog.Logger) *Parts {
	p := &Parts{db: db, log: log, turn: make(chan struct{}, partWriters)}
	p.ctx, p.stop = context.WithCancel(context.Background())
	return p
}

// Take takes over the rest of an output, before the end of its run is queued. If too many outputs
// wait already, it removes the rest from the output.
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

// Close makes Parts take no more outputs. It waits for the outputs already taken until ctx ends,
// and then gives them up.
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

	ctx, cancel := context.WithTimeout(p.ctx, partPatience)
	defer cancel()
	err := rest.Pieces(func(part job.Piece) error { return p.put(ctx, l, part) })
	if err != nil && !errors.Is(err, errPartGone) {
		p.log.Warn("a large output is stored only in part", "run", l, "error", err)
	}
}

// errPartGone means that the parts are not needed any more.
var errPartGone = errors.New("another node has ended the run, or its output was removed")

// Pauses between tries to write a part.
const (
	partPause     = 50 * time.Millisecond
	partPauseMost = 5 * time.Second
)

// put writes one part. It retries while the run's end is not written yet, or MySQL is away.
func (p *Parts) put(ctx context.Context, l trip.Launch, part job.Piece) error {
	for pause := partPause; ; pause = min(2*pause, partPauseMost) {
		state, err := p.try(ctx, l, part)
		switch {
		case err == nil && state == trip.PartWanted:
			return nil
		case err == nil && state == trip.PartGone:
			return errPartGone
		case err == nil:
			err = errors.New("the end of the run is not written yet")
		}

		select {
		case <-ctx.Done():
			return err
		case <-time.After(pause/2 + loop.Jitter(pause)):
		}
	}
}

// try writes a part once. An unknown commit counts as an error: writing the part again does no
// harm.
func (p *Parts) try(ctx context.Context, l trip.Launch, part job.Piece) (state trip.PartState, err error) {
	p.turn <- struct{}{}
	defer func() { <-p.turn }()

	data, encoding := job.PackPart(part.Data)
	err = p.db.Tx(ctx, func(tx *sql.Tx) error {
		var err error
		state, err = trip.PutPart(tx, l, part, data, encoding)
		return err
	})
	return state, err
}
