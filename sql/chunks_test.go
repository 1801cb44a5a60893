package sql

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/google/uuid"

	"go-crontab/internal/faultproxy"
	"go-crontab/job"
)

func chunk(l job.Launch, at int64, data string) Chunk {
	return Chunk{Launch: l, Piece: job.Piece{At: at, Data: []byte(data)}}
}

// textOf is what the table has of an attempt from a byte on.
func (f *fixture) textOf(l job.Launch, from int64) string {
	f.Helper()
	pieces, err := f.db.Chunks(f.Context(), l, from)
	if err != nil {
		f.Fatal(err)
	}
	text := ""
	for _, p := range pieces {
		text += fmt.Sprintf("[%d]%s", p.At, p.Data)
	}
	return text
}

func TestChunks(t *testing.T) {
	f := setUp(t)
	a, b := job.Launch{Session: uuid.New(), N: 1}, job.Launch{Session: uuid.New(), N: 1}
	f.tx(func(tx *Tx) error { return tx.PutChunks(nil) })
	f.tx(func(tx *Tx) error {
		return tx.PutChunks([]Chunk{chunk(a, 0, "one "), chunk(a, 4, "tw"), chunk(b, 0, "\x00\xff'\\")})
	})
	f.tx(func(tx *Tx) error { return tx.PutChunks([]Chunk{chunk(a, 4, "two "), chunk(a, 20, "three")}) }) // it has grown
	for from, want := range map[int64]string{
		0: "[0]one [4]two [20]three", 3: "[0]one [4]two [20]three", 4: "[4]two [20]three", 7: "[4]two [20]three", 8: "[20]three", 19: "[20]three", 24: "[20]three", 25: "", 99: "",
	} {
		if got := f.textOf(a, from); got != want {
			t.Errorf("from %d: got %q, want %q", from, got, want)
		}
	}
	if got := f.textOf(b, 0); got != "[0]\x00\xff'\\" {
		t.Errorf("any bytes: got %q", got)
	}
	if got := f.textOf(job.Launch{Session: a.Session, N: 2}, 0); got != "" {
		t.Errorf("of nobody: got %q", got)
	}
	f.tx(func(tx *Tx) error {
		return tx.CutChunks([]ChunkRange{{Launch: a, From: 4, To: 20}, {Launch: b, From: 1, To: 99}})
	})
	if got := f.textOf(a, 0); got != "[0]one [20]three" {
		t.Errorf("cut: got %q", got)
	}
	f.tx(func(tx *Tx) error { return tx.DropChunks([]job.Launch{a, {Session: uuid.New(), N: 1}}) })
	f.want("pieces left", 1, "SELECT COUNT(*) FROM chunk")
	f.tx(func(tx *Tx) error {
		out, err := tx.TakeChunks(b.Session, []int64{7, 1})
		if got := out[1]; err != nil || len(out) != 1 || string(got.Head) != "\x00\xff'\\" || got.Bytes != 4 {
			t.Errorf("taken: got %+v, %v", out, err)
		}
		return err
	})
	f.want("pieces left", 0, "SELECT COUNT(*) FROM chunk")
}

// TestManyChunks are more than one statement takes.
func TestManyChunks(t *testing.T) {
	f := setUp(t)
	l := job.Launch{Session: uuid.New(), N: 1}
	var chunks []Chunk
	for i := range int64(1203) {
		chunks = append(chunks, chunk(l, i, "x"))
	}
	chunks = append(chunks, chunk(l, 10_000, string(bytes.Repeat([]byte{'\''}, 3<<20))), chunk(l, 4_000_000, "end"))
	f.tx(func(tx *Tx) error { return tx.PutChunks(chunks) })
	f.want("bytes", 1203+3<<20+3, "SELECT SUM(LENGTH(data)) FROM chunk")
	var ranges []ChunkRange
	for i := range int64(401) {
		ranges = append(ranges, ChunkRange{l, 3 * i, 3*i + 2})
	}
	f.tx(func(tx *Tx) error { return tx.CutChunks(ranges) })
	f.want("pieces", 1203-802+2, "SELECT COUNT(*) FROM chunk")
}

// TestChunkReads holds what is read for the sake of live output: of others nothing, and not the table.
func TestChunkReads(t *testing.T) {
	f := setUp(t)
	db, p := f.behind(1)
	var mu sync.Mutex
	var statements []string
	p.OnCommand(func(c faultproxy.Command) {
		mu.Lock()
		defer mu.Unlock()
		if c.SQL != "" {
			statements = append(statements, c.SQL)
		}
	})
	f.exec("ALTER TABLE chunk STATS_PERSISTENT=1, STATS_AUTO_RECALC=0") // the server keeps believing that it is empty
	f.exec("ANALYZE TABLE chunk")
	var chunks []Chunk
	sessions := []uuid.UUID{uuid.New(), uuid.New()}
	for _, s := range sessions {
		for n := range int64(100) {
			for at := range int64(20) {
				chunks = append(chunks, chunk(job.Launch{Session: s, N: n}, at, "x"))
			}
		}
	}
	f.tx(func(tx *Tx) error { return tx.PutChunks(chunks) })
	l := job.Launch{Session: sessions[0], N: 50}
	for _, c := range []struct {
		name string
		do   func() error
	}{
		{"read", func() error {
			pieces, err := db.Chunks(t.Context(), l, 15)
			return wantLen(err, len(pieces), 5)
		}},
		{"cut", func() error {
			return db.Tx(t.Context(), func(tx *Tx) error { return tx.CutChunks([]ChunkRange{{l, 3, 5}, {l, 7, 8}}) })
		}},
		{"drop", func() error {
			return db.Tx(t.Context(), func(tx *Tx) error { return tx.DropChunks([]job.Launch{l, {Session: sessions[1], N: 3}}) })
		}},
		{"take", func() error {
			return db.Tx(t.Context(), func(tx *Tx) error { _, err := tx.TakeChunks(sessions[1], []int64{8, 9}); return err })
		}},
	} {
		statements = nil
		if err := c.do(); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		seen := slices.Clone(statements)
		f.wantIndex(c.name, seen, "PRIMARY")
	}
}

// TestChunksGoOrStayWithTheTransaction: a transaction that is rolled back has taken nothing.
func TestChunksGoOrStayWithTheTransaction(t *testing.T) {
	f := setUp(t)
	l := job.Launch{Session: uuid.New(), N: 1}
	f.tx(func(tx *Tx) error { return tx.PutChunks([]Chunk{chunk(l, 0, "kept")}) })
	no := errors.New("no")
	f.refused("take and fail", no, func(tx *Tx) error {
		if _, err := tx.TakeChunks(l.Session, []int64{1}); err != nil {
			return err
		}
		return no
	})
	if got := f.textOf(l, 0); got != "[0]kept" {
		t.Errorf("got %q", got)
	}
}

func TestStrayChunks(t *testing.T) {
	f := setUp(t)
	s, other := uuid.New(), uuid.New()
	f.exec("INSERT INTO task (job_id, due, due_now, hash, state, session_id, launch) VALUES (1, 1, 1, 1, 2, ?, 5), (1, 2, 2, 1, 1, ?, 6)", s[:], s[:])
	var chunks []Chunk
	for _, l := range []job.Launch{{Session: s, N: 5}, {Session: s, N: 6}, {Session: s, N: 7}, {Session: other, N: 5}} {
		chunks = append(chunks, chunk(l, 0, "a"), chunk(l, 1, "b"))
	}
	f.tx(func(tx *Tx) error { return tx.PutChunks(chunks) })
	stray, err := f.db.StrayChunks(t.Context(), 10)
	want := []job.Launch{{Session: s, N: 7}, {Session: other, N: 5}}
	if err != nil || len(stray) != 2 || !slices.Contains(stray, want[0]) || !slices.Contains(stray, want[1]) {
		t.Errorf("got %v, %v, want %v", stray, err, want)
	}
	if stray, err := f.db.StrayChunks(t.Context(), 1); err != nil || len(stray) != 1 {
		t.Errorf("the first: got %v, %v", stray, err)
	}
}
