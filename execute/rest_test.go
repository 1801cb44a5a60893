package execute

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"

	"go-crontab/job"
)

// piecesOf returns all kept pieces of an output, in order.
func piecesOf(t interface{ Fatalf(string, ...any) }, o job.Output) []job.Piece {
	ends := o.Pieces()
	if o.Rest == nil {
		return ends
	}

	out := ends[:1:1]
	parts, size := 0, 0
	err := o.Rest.Pieces(func(p job.Piece) error {
		parts, size = parts+1, size+len(p.Data)
		p.Data = bytes.Clone(p.Data)
		out = append(out, p)
		return nil
	})
	if err != nil || parts != o.Parts || size != o.PartBytes {
		t.Fatalf("%d parts with %d bytes, %v; announced are %d with %d", parts, size, err, o.Parts, o.PartBytes)
	}
	o.Rest.Close()
	return append(out, ends[1:]...)
}

// What is kept in memory and in the file are together the two halves, and each piece knows its place and its line.
func TestRestKeepsBothHalves(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		memory := rapid.IntRange(2, 60).Draw(t, "memory")
		most := rapid.IntRange(memory, 400).Draw(t, "most")
		all := []byte(rapid.StringOfN(rapid.RuneFrom([]rune("ab\n")), 0, 1200, -1).Draw(t, "all"))
		sizes := rapid.SliceOf(rapid.IntRange(1, 90)).Draw(t, "sizes")
		o := newCapture(memory, &Attempt{Output: job.Capture{Keep: job.Size(most)}})
		if err := o.readAll(&chunks{bytes.Clone(all), sizes}); err != nil {
			t.Fatal(err)
		}
		out := o.output()

		kept, last := []byte(nil), int64(0)
		for _, p := range job.Join(piecesOf(t, out)) {
			if p.At < last || !bytes.Equal(p.Data, all[p.At:p.End()]) || p.Line != int64(bytes.Count(all[:p.At], newline)) {
				t.Fatalf("piece %+v does not stand there in %q", p, all)
			}
			kept, last = append(kept, p.Data...), p.End()
		}

		want := all
		if len(all) > most {
			half := max(most-max(most/2, memory-memory/2), memory/2)
			want = append(bytes.Clone(all[:half]), all[len(all)-max(most/2, memory-memory/2):]...)
		}
		if out.Bytes != int64(len(all)) || out.Kept() != len(kept) || !bytes.Equal(kept, want) {
			t.Errorf("of %d bytes, %d in memory and %d in all: kept %d, told %d, want %d",
				len(all), memory, most, len(kept), out.Kept(), len(want))
		}
	})
}

// A secret is masked wherever it stands, also where one part ends and the next one begins.
func TestRestIsMasked(t *testing.T) {
	t.Parallel()
	const secret = "correct horse battery"
	text := strings.Repeat(strings.Repeat("x", 13)+secret+"\n", 30_000)
	a := Attempt{Output: job.Capture{Keep: 4 << 20}, known: &known{masker: maskOf(secret)}}
	o := newCapture(DefaultKeep, &a)
	if err := o.readAll(iotest.HalfReader(strings.NewReader(text))); err != nil {
		t.Fatal(err)
	}

	got := job.Join(piecesOf(t, o.output()))
	want := strings.ReplaceAll(text, secret, stars)
	if len(got) != 1 || string(got[0].Data) != want {
		t.Errorf("%d pieces, masked is not all of it", len(got))
	}
}

func TestWithoutTemporaryFolder(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir()+"/none")
	s := shell(t)
	a := attempt("yes | head -c 200000")
	a.Output.Keep = 1 << 20
	res := s.Execute(context.Background(), a)
	if res.Outcome != job.Succeeded || res.Reason.Code != job.ReasonOutputCut ||
		res.Output.Kept() != DefaultKeep || res.Output.Bytes != 200_000 {
		t.Errorf("got %v %v, %d of %d bytes", res.Outcome, res.Reason, res.Output.Kept(), res.Output.Bytes)
	}
}

// The file has no name, so nothing is left of it.
func TestRestLeavesNoFile(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	s := shell(t)
	a := attempt("yes | head -c 200000")
	a.Output.Keep = 1 << 20
	res := s.Execute(context.Background(), a)
	left, err := os.ReadDir(dir)
	if len(left) > 0 || err != nil || res.Output.Rest == nil {
		t.Errorf("left are %v, %v", left, err)
	}
	if got := job.Join(piecesOf(t, res.Output)); len(got) != 1 || string(got[0].Data) != strings.Repeat("y\n", 100_000) {
		t.Errorf("%d pieces", len(got))
	}
}

func TestMarkedStderr(t *testing.T) {
	t.Parallel()
	s := shell(t)
	a := attempt("echo out; sleep .2; echo secret-of-it >&2; sleep .2; printf 'more\\n'; exec >&-; sleep .1; echo last >&2")
	a.Output.MarkStderr = true
	a.known = &known{masker: maskOf("secret-of-it")}
	res := s.Execute(context.Background(), a)
	if got := string(res.Output.Head); got != "out\n***\nmore\nlast\n" || res.Outcome != job.Succeeded {
		t.Fatalf("got %v, %q", res, got)
	}

	stamps, err := job.DecodeStamps(res.Output.Stamps)
	if err != nil || !stamps.Apart {
		t.Fatalf("got %+v, %v", stamps, err)
	}
	got := ""
	for _, l := range job.NewLineStamps(stamps).Of(res.Output.Pieces()[0]) {
		got += fmt.Sprint(l.Line, l.Stderr, l.Millis >= 100*min(l.Line-1, 2), " ")
	}
	if want := "1 false true 2 true true 3 false true 4 true true "; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// Stamps stay few, however often a command changes between its streams and however long it runs.
func TestStampsAreBounded(t *testing.T) {
	t.Parallel()
	o := newCapture(DefaultKeep, &Attempt{Output: job.Capture{MarkStderr: true}})
	for i := range 100_000 {
		o.take([]byte("line\n"), i%2 == 0)
	}

	stamps, err := job.DecodeStamps(o.output().Stamps)
	if err != nil || len(stamps.List) > stampsLeast {
		t.Fatalf("%d stamps, %v", len(stamps.List), err)
	}
	for i, k := range stamps.List[1:] {
		if k.Stderr == stamps.List[i].Stderr || k.At >= 500_000-32<<10 && k.At-stamps.List[i].At != 5 {
			t.Fatalf("stamp %+v follows %+v", k, stamps.List[i])
		}
	}
}
