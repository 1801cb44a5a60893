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
	"go-crontab/test/faultproxy"
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
	if missing, err := f.beside.MissingParts(t.Context(), &r, r.Ended); missing.Count != 0 || err != nil {
		t.Errorf("%+v is missing, %v", missing, err)
	}

	ended, cancel := context.WithCancel(t.Context())
	cancel()
	parts.Close(ended)
	again := large(&e)
	if parts.Take(e.Launch, &e.Output); e.Output.Parts != 0 || !again.closed.Load() {
		t.Error("what is closed took an output")
	}
}

// TestPartsBetweenTwoReads: the end of the run is committed between the two reads of a transaction
// that would write a part.
func TestPartsBetweenTwoReads(t *testing.T) {
	f := setUp(t)
	parts := NewParts(f.through.DB, f.log())
	e := f.executing(1)[0]
	rest := large(&e)

	second := f.proxy.Add(faultproxy.Rule{
		Match:  faultproxy.SQL("^SELECT (id FROM run|parts FROM output) FORCE INDEX"),
		Skip:   1,
		Action: faultproxy.HoldBefore(0),
	})
	parts.Take(e.Launch, &e.Output)
	if err := second.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.put(e)
	second.Release()
	f.closed(rest)
	f.want("parts", 3, "SELECT COUNT(*) FROM output_part")
}

// TestPartsGoOn: a failure in the middle repeats only the part that failed.
func TestPartsGoOn(t *testing.T) {
	f := setUp(t)
	parts := NewParts(f.through.DB, f.log())
	e := f.executing(1)[0]
	rest := large(&e)

	var writes atomic.Int64
	insert := faultproxy.SQL("^INSERT INTO output_part")
	f.proxy.OnCommand(func(c faultproxy.Command) {
		if insert(c) {
			writes.Add(1)
		}
	})
	f.proxy.Add(faultproxy.Rule{Match: insert, Skip: 1, Action: faultproxy.CutBefore()})
	parts.Take(e.Launch, &e.Output)
	f.put(e)
	f.closed(rest)

	text, _ := f.kept(e.Launch)
	if want := "head" + strings.Join(rest.lines, "") + "tail"; text != want || writes.Load() != 4 {
		t.Errorf("%d writes, kept %d bytes, want %d: %.60q", writes.Load(), len(text), len(want), text)
	}
}

// openRest counts the rests that are being read.
type openRest struct {
	*fakeRest
	reads      atomic.Int64
	open, most *atomic.Int64
}

func (r *openRest) Pieces(yield func(job.Piece) error) error {
	defer r.open.Add(-1)
	r.most.Store(max(r.most.Load(), r.open.Add(1)))
	r.reads.Add(1)
	return r.fakeRest.Pieces(yield)
}

// TestPartsInMemory: outputs that wait for their ends take no turn, and so no memory.
func TestPartsInMemory(t *testing.T) {
	f := setUp(t)
	parts := NewParts(f.through.DB, f.log())
	var open, most atomic.Int64
	ends := f.executing(3 * partWriters)
	rests := make([]*openRest, len(ends))
	for i := range ends {
		rests[i] = &openRest{fakeRest: large(&ends[i]), open: &open, most: &most}
		ends[i].Output.Rest = rests[i]
		parts.Take(ends[i].Launch, &ends[i].Output)
	}

	for i, r := range rests {
		for began := time.Now(); r.reads.Load() == 0; time.Sleep(5 * time.Millisecond) {
			if time.Since(began) > 20*time.Second {
				t.Fatalf("output %d is never tried", i)
			}
		}
	}
	f.put(ends...)
	for _, r := range rests {
		f.closed(r.fakeRest)
	}
	if most.Load() > partWriters {
		t.Errorf("%d outputs were read at the same time, want %d at most", most.Load(), partWriters)
	}
	f.want("parts", 3*len(ends), "SELECT COUNT(*) FROM output_part")
}

// TestPartsOfADeadNode: the readers of an output know when no more parts come.
func TestPartsOfADeadNode(t *testing.T) {
	f := setUp(t)
	e := f.executing(1)[0]
	large(&e).Close() // its node dies with it
	f.put(e)
	_, r := f.kept(e.Launch)
	const gone = 1_800_000_000_000_000
	end := job.Micros(gone)
	f.exec("UPDATE run SET ended = ? WHERE id = ?", gone, e.Run)
	r.Ended = end

	for name, c := range map[string]struct {
		gone   any
		after  time.Duration
		coming bool
	}{
		"its node lives":            {nil, time.Minute, true},
		"for too long":              {nil, trip.PartPatience, false},
		"its node is just stopping": {gone, trip.PartGrace - 1, true},
		"its node is gone":          {gone, trip.PartGrace, false},
	} {
		f.exec("UPDATE life SET gone = ? WHERE id = 7", c.gone)
		got, err := f.beside.MissingParts(t.Context(), &r, end.Add(c.after))
		if err != nil || got.Count != 3 || got.Coming != c.coming {
			t.Errorf("%s: got %+v, %v", name, got, err)
		}
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
