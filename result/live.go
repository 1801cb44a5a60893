package result

import (
	"cmp"
	"context"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"go-crontab/job"
	"go-crontab/sql"
	"go-crontab/sql/trip"
)

// Live writes the output of attempts while they execute, in pieces, so that any node can show it. It is a copy for
// readers: what a run keeps is written with its end, and the pieces go in the same transaction. Only if the node dies
// are they all that is left, and become the output of the lost run.
//
//	command ──Sink──▶ pending (bounded) ──each half second──▶ table chunk ──┬─ Recorder: the run ends, pieces go
//	                                                                         ├─ Reaper: the run is lost, they are its output
//	                                                                         └─ sweep: nobody knew of them
//
// A command cannot flood the database: it has pendingMost bytes for each flush, all of a node's have flushMost, and
// headKept from the beginning and some tailKept from the end stay in the table. What is too much is left out, and the
// next piece says where it begins, so that a reader sees the gap.
type Live struct {
	db  *sql.DB
	log *slog.Logger

	mu      sync.Mutex
	streams map[job.Launch]*stream
}

const (
	flushEvery = 500 * time.Millisecond
	quietTicks = 2 // ticks that a stream lives before it is written: most are over by then, and cost no statement
	sweepEvery = 10 * time.Minute
	sweepBatch = 1000

	pendingMost = 32 << 10
	flushMost   = 1 << 20
	flushLeast  = 1 << 10 // of each attempt, however many there are
	pieceSize   = 2 << 10 // a piece grows up to this, so that a line each second does not make a row each second
	headKept    = 32 << 10
	tailKept    = 32 << 10
)

// NewLive returns one whose sinks may be used at once. Run it.
func NewLive(db *sql.DB, log *slog.Logger) *Live {
	return &Live{db: db, log: log, streams: map[job.Launch]*stream{}}
}

// stream is the output of one attempt that has written something.
type stream struct {
	launch job.Launch

	mu      sync.Mutex
	pending []byte // not taken yet
	at      int64  // which byte of the output is its first
	skipped int64  // bytes behind it that were left out: nothing more is taken until it is empty

	// Of the loop alone.
	ticks     int
	open      trip.Chunk // the last piece
	unwritten bool       // it is not known to be written
	tail      []span     // the pieces behind the head, the open one included
	kept      int64      // bytes of them

	// Under the mutex of Live.
	tried  bool          // something may have been written
	flight chan struct{} // closed when the transaction that carries a piece of it is over; nil: there is none
}

// span is where a piece begins, and its length.
type span struct{ at, n int64 }

// Sink takes the output of an attempt as it comes. A silent attempt leaves no trace here.
func (v *Live) Sink(l job.Launch) func([]byte) {
	var s *stream
	return func(p []byte) {
		if s == nil {
			s = &stream{launch: l}
			v.mu.Lock()
			v.streams[l] = s
			v.mu.Unlock()
		}
		s.take(p)
	}
}

func (s *stream) take(p []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	if s.skipped == 0 {
		n = min(len(p), pendingMost-len(s.pending))
		s.pending = append(s.pending, p[:n]...)
	}
	s.skipped += int64(len(p) - n)
}

// End forgets an attempt that is over and tells whether pieces of it may have been written, which then are to go with
// the run's end. Nothing of it is written any more: if that is just happening, End waits for it.
func (v *Live) End(l job.Launch) (written bool) {
	v.mu.Lock()
	s := v.streams[l]
	if s == nil {
		v.mu.Unlock()
		return false
	}
	delete(v.streams, l)
	flight := s.flight
	v.mu.Unlock()
	if flight != nil {
		<-flight
	}
	return s.tried
}

// Run writes until ctx ends.
func (v *Live) Run(ctx context.Context) error {
	wait, nextSweep := rand.N(flushEvery), time.Now().Add(rand.N(sweepEvery))
	failed := false
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(wait):
		}
		wait = flushEvery
		err := v.flush(ctx)
		if err == nil && time.Now().After(nextSweep) {
			nextSweep = time.Now().Add(sweepEvery)
			err = v.sweep(ctx)
		}
		if err != nil && ctx.Err() == nil {
			wait = 4 * flushEvery // what comes meanwhile is bounded
			if !failed {
				v.log.Warn("cannot write live output, trying again", "error", err)
			}
		}
		failed = err != nil
	}
}

// flush writes what has come, of all attempts in one transaction.
func (v *Live) flush(ctx context.Context) error {
	batch, landed := v.board()
	if len(batch) == 0 {
		return nil
	}
	defer landed()
	var chunks []trip.Chunk
	var cuts []trip.ChunkRange
	for _, s := range batch {
		chunks = append(chunks, s.open)
		if cut, ok := s.cut(); ok {
			cuts = append(cuts, cut)
		}
	}
	err := v.db.Tx(ctx, func(tx *sql.Tx) error {
		if err := trip.PutChunks(tx, chunks); err != nil {
			return err
		}
		return trip.CutChunks(tx, cuts)
	})
	if err != nil {
		return err // unknown too: the same pieces are written again, over themselves
	}
	for _, s := range batch {
		s.written()
	}
	return nil
}

// board picks the attempts with something to write, the oldest first. Until landed is called, End waits for them.
func (v *Live) board() (batch []*stream, landed func()) {
	flight := make(chan struct{})
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, s := range v.streams {
		if s.ticks++; s.ticks > quietTicks && (s.unwritten || s.waits()) {
			batch = append(batch, s)
		}
	}
	slices.SortFunc(batch, func(a, b *stream) int { return cmp.Compare(a.launch.Run, b.launch.Run) })
	share := min(pendingMost, max(flushLeast, flushMost/max(1, len(batch))))
	for _, s := range batch {
		s.next(share)
		s.tried, s.flight = true, flight
	}
	return batch, func() {
		v.mu.Lock()
		defer v.mu.Unlock()
		for _, s := range batch {
			s.flight = nil
		}
		close(flight)
	}
}

func (s *stream) waits() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.pending) > 0
}

// next moves up to most bytes from what waits into the open piece, or makes them the next one. What could not be
// written comes first, by itself.
func (s *stream) next(most int) {
	if s.unwritten {
		return
	}
	s.mu.Lock()
	n := min(len(s.pending), most)
	at, data := s.at, slices.Clone(s.pending[:n])
	s.at += int64(n)
	s.pending = s.pending[:copy(s.pending, s.pending[n:])]
	if len(s.pending) == 0 {
		s.at += s.skipped
		s.skipped = 0
	}
	s.mu.Unlock()

	s.unwritten = true
	if s.open.Data != nil && s.open.End() == at && len(s.open.Data)+n <= pieceSize {
		s.open.Data = append(s.open.Data, data...)
	} else {
		s.open = trip.Chunk{Launch: s.launch, Piece: job.Piece{At: at, Data: data}}
	}
	if s.open.At < headKept {
		return
	}
	if last := len(s.tail) - 1; last >= 0 && s.tail[last].at == s.open.At {
		s.tail[last].n += int64(n)
	} else {
		s.tail = append(s.tail, span{at, int64(n)})
	}
	s.kept += int64(n)
}

// surplus is how many of the oldest pieces of the tail are too many. They are let grow to twice what is kept before
// they are cut: not each flush needs a second statement.
func (s *stream) surplus() int {
	if s.kept <= 2*tailKept {
		return 0
	}
	n := 0
	for kept := s.kept; n < len(s.tail)-1 && kept > tailKept; n++ {
		kept -= s.tail[n].n
	}
	return n
}

func (s *stream) cut() (trip.ChunkRange, bool) {
	n := s.surplus()
	if n == 0 {
		return trip.ChunkRange{}, false
	}
	return trip.ChunkRange{Launch: s.launch, From: s.tail[0].at, To: s.tail[n].at}, true
}

// written notes that the open piece is in the table, and what was too much is not.
func (s *stream) written() {
	s.unwritten = false
	n := s.surplus()
	for _, piece := range s.tail[:n] {
		s.kept -= piece.n
	}
	s.tail = slices.Delete(s.tail, 0, n)
}

// sweep removes pieces of attempts that are over and of which nobody knew: a commit that came later than the run's end,
// or a node that went on writing after it was taken for dead.
func (v *Live) sweep(ctx context.Context) error {
	for {
		stray, err := trip.StrayChunks(v.db.Reader(ctx), sweepBatch)
		if err != nil || len(stray) == 0 {
			return err
		}
		if err := v.db.Tx(ctx, func(tx *sql.Tx) error { return trip.DropChunks(tx, stray) }); err != nil {
			return err // unknown too: the next sweep sees what is left
		}
		v.log.Info("removed output of runs that are over", "runs", len(stray))
		if len(stray) < sweepBatch {
			return nil
		}
	}
}
