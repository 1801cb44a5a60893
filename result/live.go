package result

import (
	"bytes"
	"cmp"
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"go-crontab/internal/loop"
	"go-crontab/job"
	"go-crontab/sql"
	"go-crontab/sql/trip"
)

// Live writes the output of attempts while they execute, in pieces, so that any node can show it.
// The pieces are a copy for readers. The transaction that writes the run's end also writes the
// output to keep, and removes the pieces. If the node dies, the pieces become the output of the
// lost run.
//
//	command ──Sink──▶ pending (bounded) ──each half second──▶ table chunk ──┬─ Recorder: the run ends, pieces go
//	                                                                         ├─ Reaper: the run is lost, it keeps the pieces
//	                                                                         └─ sweep: forgotten pieces go
//
// A command cannot flood the database. Each flush writes at most pendingMost bytes for an attempt,
// and flushMost for all attempts of a node. The table keeps headKept bytes from the beginning and
// about tailKept from the end. Surplus output is left out. The next piece has its offset, so a
// reader sees the gap.
type Live struct {
	db  *sql.DB
	log *slog.Logger

	mu      sync.Mutex
	streams map[job.Launch]*stream
}

const (
	flushEvery = 500 * time.Millisecond
	quietTicks = 2 // ticks before a stream is first written: most attempts end earlier, and cost no statement
	sweepEvery = 10 * time.Minute
	sweepBatch = 1000

	pendingMost = 32 << 10
	flushMost   = 1 << 20
	flushLeast  = 1 << 10 // for each attempt, even if there are many
	pieceSize   = 2 << 10 // a piece grows up to this size, so one line each second does not make one row each second
	headKept    = 32 << 10
	tailKept    = 32 << 10
)

// NewLive returns a Live whose sinks may be used at once. The caller runs it.
func NewLive(db *sql.DB, log *slog.Logger) *Live {
	return &Live{db: db, log: log, streams: map[job.Launch]*stream{}}
}

// stream is the output of an attempt that has written something.
type stream struct {
	launch job.Launch

	mu      sync.Mutex
	pending []byte // not in a piece yet
	at      int64  // offset of pending in the output
	line    int64  // line ends before pending
	skipped int64  // bytes left out after pending; until pending is empty, all further output is left out
	left    int64  // line ends in the skipped bytes

	// Used only by the loop.
	ticks     int
	open      trip.Chunk // the last piece
	unwritten bool       // open may not be in the table yet
	tail      []span     // the pieces after the head, including the open one
	kept      int64      // bytes in tail

	// Guarded by the mutex of Live.
	tried  bool          // something may have been written
	flight chan struct{} // closed after the transaction that writes a piece of this stream; nil if there is none
}

// span is the offset and the length of a piece.
type span struct{ at, n int64 }

// Sink returns a function that takes the output of an attempt as it comes. An attempt without
// output leaves no trace in Live.
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
	s.left += int64(bytes.Count(p[n:], newline))
}

var newline = []byte{'\n'}

// End forgets an attempt that has ended. It reports whether the table may hold pieces of the
// attempt's output. If so, the run's end must remove these pieces. If a write is under way, End
// waits for it. After End there are no more writes.
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
	nextSweep := time.Now().Add(loop.Jitter(sweepEvery))
	return loop.Loop{
		First:  loop.Jitter(flushEvery),
		Period: flushEvery,
		Retry:  4 * flushEvery, // pending output is bounded
		Log:    v.log,
		Failed: "cannot write live output, trying again",
	}.Run(ctx, loop.Each(func(ctx context.Context) error {
		err := v.flush(ctx)
		if err == nil && time.Now().After(nextSweep) {
			nextSweep = time.Now().Add(sweepEvery)
			err = v.sweep(ctx)
		}
		return err
	}))
}

// flush writes the new output of all attempts in one transaction.
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
		return err // also after an unknown commit: the next flush overwrites the same pieces
	}

	for _, s := range batch {
		s.written()
	}
	return nil
}

// board picks the attempts that have output to write, the oldest first. Until landed is called,
// End waits for these attempts.
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

// next moves up to most pending bytes into the open piece, or starts a new piece with them. If the
// open piece is not written yet, next does nothing.
func (s *stream) next(most int) {
	if s.unwritten {
		return
	}
	s.mu.Lock()
	n := min(len(s.pending), most)
	at, line, data := s.at, s.line, slices.Clone(s.pending[:n])
	s.at += int64(n)
	s.line += int64(bytes.Count(data, newline))
	s.pending = s.pending[:copy(s.pending, s.pending[n:])]
	if len(s.pending) == 0 {
		s.at += s.skipped
		s.line += s.left
		s.skipped, s.left = 0, 0
	}
	s.mu.Unlock()

	s.unwritten = true
	if s.open.Data != nil && s.open.End() == at && len(s.open.Data)+n <= pieceSize {
		s.open.Data = append(s.open.Data, data...)
	} else {
		s.open = trip.Chunk{Launch: s.launch, Piece: job.Piece{At: at, Data: data, Line: line}}
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

// surplus returns the number of oldest tail pieces to remove. The tail may grow to twice its limit
// before it is cut, so that only some flushes need a second statement.
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

// written notes that the open piece is in the table, and that the surplus pieces are gone.
func (s *stream) written() {
	s.unwritten = false
	n := s.surplus()
	for _, piece := range s.tail[:n] {
		s.kept -= piece.n
	}
	s.tail = slices.Delete(s.tail, 0, n)
}

// sweep removes forgotten pieces of ended attempts. Such pieces were committed after the run's
// end, or by a node that went on writing after it was declared dead.
func (v *Live) sweep(ctx context.Context) error {
	for {
		stray, err := trip.StrayChunks(v.db.Reader(ctx), sweepBatch)
		if err != nil || len(stray) == 0 {
			return err
		}
		if err := v.db.Tx(ctx, func(tx *sql.Tx) error { return trip.DropChunks(tx, stray) }); err != nil {
			return err // also after an unknown commit: the next sweep removes the rest
		}
		v.log.Info("removed live output of ended runs", "runs", len(stray))
		if len(stray) < sweepBatch {
			return nil
		}
	}
}
