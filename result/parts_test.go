package result

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go-crontab/job"
	"go-crontab/sql"
	"go-crontab/sql/read"
	"go-crontab/sql/trip"
)

// fakeRest is the rest of an output, in parts of its lines.
type fakeRest struct {
	at     int64
	lines  []string
	closed atomic.Bool
}

func (r *fakeRest) Pieces(yield func(job.Piece) error) error {
	at := r.at
	for i, line := range r.lines {
		if err := yield(job.Piece{At: at, Data: []byte(line), Line: int64(i)}); err != nil {
			return err
		}
		at += int64(len(line))
	}
	return nil
}

func (r *fakeRest) Close() { r.closed.Store(true) }

// large gives a run an output with a rest.
func large(e *trip.End) *fakeRest {
	rest := &fakeRest{at: 4, lines: []string{strings.Repeat("many words\n", 300), "and one\n", "more\n"}}
	size := len(strings.Join(rest.lines, ""))
	e.Output = job.Output{
		Head: []byte("head"), Tail: []byte("tail"), Bytes: int64(8 + size), Lines: 302,
		Parts: 3, PartBytes: size, Rest: rest,
	}
	return rest
}

// kept reads what is kept of a run.
func (f *fixture) kept(l trip.Launch) (text string, r read.Run) {
	f.Helper()
	r, err := f.beside.Run(f.Context(), l.Run)
	if err == nil {
		err = f.beside.Pieces(f.Context(), &r, 0, func(p job.Piece) error {
			text += string(p.Data)
			return nil
		})
	}
	if err != nil {
		f.Fatal(err)
	}
	return text, r
}

func (f *fixture) closed(rest *fakeRest) {
	f.Helper()
	for began := time.Now(); !rest.closed.Load(); time.Sleep(5 * time.Millisecond) {
		if time.Since(began) > 20*time.Second {
			f.Fatal("the rest is not closed")
		}
	}
}

// TestPartsOfALargeOutput writes parts only after the end of the run.
func TestPartsOfALargeOutput(t *testing.T) {
	f := setUp(t)
	parts := NewParts(f.through.DB, f.log())
	e := f.executing(1)[0]
	rest := large(&e)

	parts.Take(e.Launch, &e.Output)
	time.Sleep(200 * time.Millisecond)
	f.want("parts before the end", 0, "SELECT COUNT(*) FROM output_part")
	f.put(e)
	f.closed(rest)

	text, r := f.kept(e.Launch)
	if want := "head" + strings.Join(rest.lines, "") + "tail"; text != want || int(r.Kept) != len(want) {
		t.Errorf("kept %d bytes of %d: %.60q", r.Kept, len(want), text)
	}
	if missing, err := f.beside.MissingParts(t.Context(), &r); missing != 0 || err != nil {
		t.Errorf("%d parts are missing, %v", missing, err)
	}

	ended, cancel := context.WithCancel(t.Context())
	cancel()
	parts.Close(ended)
	again := large(&e)
	if parts.Take(e.Launch, &e.Output); e.Output.Parts != 0 || !again.closed.Load() {
		t.Error("what is closed took an output")
	}
}

// TestPartsThatNobodyWants: another node has ended the run, or its output was removed.
func TestPartsThatNobodyWants(t *testing.T) {
	f := setUp(t)
	parts := NewParts(f.through.DB, f.log())
	ends := f.executing(2)
	f.exec("UPDATE run SET state = 'ended', owner = -2, outcome = 'lost' WHERE id = ?", ends[0].Run)
	rests := []*fakeRest{large(&ends[0]), large(&ends[1])}
	parts.Take(ends[1].Launch, &ends[1].Output)
	f.put(ends[1])
	f.closed(rests[1])
	if err := f.dropOne(ends[1].Launch); err != nil {
		t.Fatal(err)
	}

	rests[1].closed.Store(false)
	for i := range ends {
		ends[i].Output.Rest = rests[i]
		parts.Take(ends[i].Launch, &ends[i].Output)
		f.closed(rests[i])
	}
	f.want("parts", 0, "SELECT COUNT(*) FROM output_part")
}

func (f *fixture) dropOne(l trip.Launch) error {
	old := []trip.OldRun{{ID: l.Run, Outcome: job.Succeeded, Output: true, Large: true}}
	return f.beside.DB.Tx(f.Context(), func(tx *sql.Tx) error { return trip.DropRuns(tx, old) })
}
