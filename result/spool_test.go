package result

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"go-crontab/job"
	"go-crontab/sql/trip"
)

func spool(t testing.TB) *Spool {
	t.Helper()
	s, err := OpenSpool(filepath.Join(t.TempDir(), "state", "spool"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// waitingIn returns a recorder of a session with some waiting ends.
func waitingIn(owner trip.Owner, ends ...trip.End) *Recorder {
	r := New(Config{Session: &testSession{number: owner}})
	for _, e := range ends {
		r.Put(e, false)
	}
	return r
}

// failed returns the end of a run.
func failed(id int64) trip.End {
	return trip.End{Launch: trip.Launch{Run: id, Claim: 1}, Outcome: job.Failed}
}

// anEnd draws ends of all shapes.
func anEnd(t *rapid.T) trip.End {
	micros := func(label string) job.Micros { return job.Micros(rapid.Int64().Draw(t, label)) }
	e := trip.End{
		Launch: trip.Launch{Run: rapid.Int64Range(1, 1<<62).Draw(t, "run"), Claim: rapid.Int32().Draw(t, "claim")},
		JobID:  rapid.Int64().Draw(t, "job"), Outcome: job.Outcome(rapid.IntRange(int(job.Succeeded), int(job.Superseded)).Draw(t, "outcome")),
		Final: rapid.Bool().Draw(t, "final"), Again: micros("again"), Started: micros("started"), Ended: micros("ended"),
		Signal: rapid.String().Draw(t, "signal"),
		Reason: job.Reason{Code: job.ReasonCode(rapid.String().Draw(t, "code")), Text: rapid.String().Draw(t, "reason")}, Live: rapid.Bool().Draw(t, "live"),
		Output: job.Output{
			Head: rapid.SliceOf(rapid.Byte()).Draw(t, "head"), Tail: rapid.SliceOf(rapid.Byte()).Draw(t, "tail"),
			Bytes: rapid.Int64().Draw(t, "bytes"),
		},
	}

	if rapid.Bool().Draw(t, "long") {
		e.Output.Head = bytes.Repeat([]byte("line\n"), 1000)
	}

	if rapid.Bool().Draw(t, "exited") {
		code := rapid.IntRange(0, 255).Draw(t, "exit code")
		e.Exit = &code
	}

	return e
}

// TestSpoolKeepsAll: saved ends are loaded byte by byte, for any output.
func TestSpoolKeepsAll(t *testing.T) {
	t.Parallel()
	s := spool(t)
	rapid.Check(t, func(t *rapid.T) {
		var want []Spooled
		var recorders []*Recorder
		for owner := range trip.Owner(rapid.IntRange(1, 3).Draw(t, "lives")) {
			var ends []trip.End
			for range rapid.IntRange(0, 3).Draw(t, "n") {
				ends = append(ends, anEnd(t))
			}
			ends = append(ends, anEnd(t))
			recorders = append(recorders, waitingIn(owner+1, ends...))
			for _, e := range ends {
				want = append(want, Spooled{owner + 1, e})
			}
		}

		if n, err := s.Save(recorders...); n != len(want) || err != nil {
			t.Fatalf("saved %d, %v; want %d", n, err, len(want))
		}

		got, torn, err := s.Load()
		if err != nil || torn {
			t.Fatalf("load: torn %v, %v", torn, err)
		}

		for i := range got { // the recorder has compressed what is long
			if err := got[i].End.Output.Unpack(); err != nil {
				t.Fatal(err)
			}
		}

		if d := cmp.Diff(want, got, cmpopts.EquateEmpty()); d != "" {
			t.Fatalf("loaded (+) is not what was saved (-):\n%s", d)
		}
	})
}

func TestSpool(t *testing.T) {
	t.Parallel()
	s := spool(t)
	load := func(what string, want int) {
		t.Helper()
		if got, torn, err := s.Load(); len(got) != want || torn || err != nil {
			t.Errorf("%s: loaded %d, torn %v, %v; want %d", what, len(got), torn, err, want)
		}
	}

	load("no file", 0)
	if err := s.Clear(); err != nil {
		t.Errorf("clear without a file: %v", err)
	}

	if n, err := s.Save(waitingIn(7)); n != 0 || err != nil {
		t.Errorf("saved %d, %v; want nothing", n, err)
	}

	if _, err := os.Stat(s.path()); !os.IsNotExist(err) {
		t.Errorf("nothing to save: got %v, want no file", err)
	}
	if err := os.WriteFile(s.path()+".new", []byte(`{"Owner":7,"En`), 0o600); err != nil { // a crash while saving
		t.Fatal(err)
	}

	r := waitingIn(7, failed(1))
	for range 2 { // again, with what an earlier life left and this one could not write
		if _, err := s.Save(r); err != nil {
			t.Fatal(err)
		}
	}

	load("one end, saved twice", 1)
	if n := r.Waiting(); n != 1 {
		t.Errorf("%d ends wait after they were saved, want 1", n)
	}

	if n, err := s.Save(waitingIn(7)); n != 0 || err != nil {
		t.Errorf("saved %d, %v; want nothing", n, err)
	}

	load("after a life that had nothing to save", 1)
	for path, want := range map[string]os.FileMode{s.path(): 0o600, s.dir: 0o700} {
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: got mode %v, %v; want %v", path, info.Mode(), err, want)
		}
	}

	if entries, err := os.ReadDir(s.dir); err != nil || len(entries) != 2 {
		t.Errorf("got %d files in the folder, %v; want the ends and the lock", len(entries), err)
	}
	if err := s.Clear(); err != nil {
		t.Error(err)
	}

	load("cleared", 0)
}

// TestSpoolWithoutParts: the rest of a large output dies with its process, so a spooled end announces
// no parts.
func TestSpoolWithoutParts(t *testing.T) {
	t.Parallel()
	e := failed(3)
	e.Output = job.Output{Head: []byte("head"), Tail: []byte("tail"), Bytes: 100, Parts: 2, PartBytes: 92}
	s := spool(t)
	if _, err := s.Save(waitingIn(7, e)); err != nil {
		t.Fatal(err)
	}
	ends, _, err := s.Load()
	if err != nil || len(ends) != 1 {
		t.Fatalf("got %v, %v", ends, err)
	}
	if o := ends[0].End.Output; o.Parts != 0 || o.Kept() != 8 || !o.Truncated() {
		t.Errorf("%d parts are announced, %d bytes of %d are kept", o.Parts, o.Kept(), o.Bytes)
	}
}

// TestSpoolErrors: failures to write or read are reported, and the earlier contents stay.
func TestSpoolErrors(t *testing.T) {
	t.Parallel()
	s := spool(t)
	r := waitingIn(7, failed(1))
	if _, err := s.Save(r); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(s.path()+".new", 0o700); err != nil { // where it is to be written
		t.Fatal(err)
	}

	if n, err := s.Save(r); err == nil || n != 0 {
		t.Errorf("saved %d, %v; want an error", n, err)
	}

	if got, _, err := s.Load(); len(got) != 1 || err != nil {
		t.Errorf("after it: loaded %d, %v; want 1", len(got), err)
	}

	blocked := &Spool{dir: filepath.Join(s.path(), "a file is no folder")}
	if _, _, err := blocked.Load(); err == nil {
		t.Error("load: got no error")
	}

	if _, err := OpenSpool(blocked.dir); err == nil {
		t.Error("open: got no error")
	}
}

// TestSpoolIsOneNodes: a spool can only be opened again after it is closed.
func TestSpoolIsOneNodes(t *testing.T) {
	s := spool(t)
	if _, err := OpenSpool(s.dir); err == nil || !strings.Contains(err.Error(), s.dir+": another node uses this folder") {
		t.Errorf("open it twice: got %v", err)
	}
	s.Close()
	again, err := OpenSpool(s.dir)
	if err != nil {
		t.Fatalf("once it is closed: %v", err)
	}
	again.Close()
}

// FuzzSpoolLoad puts arbitrary bytes before and after whole lines: Load never panics, and loses
// none of the lines.
func FuzzSpoolLoad(f *testing.F) {
	whole, err := json.Marshal(&Spooled{7, trip.End{Launch: trip.Launch{Run: 1 << 40, Claim: 1}, Outcome: job.Succeeded, Reason: job.Reason{Code: job.ReasonOutputHeld, Text: "a whole line"}}})
	if err != nil {
		f.Fatal(err)
	}

	f.Add([]byte(nil), []byte(nil))
	f.Add([]byte(nil), whole[:len(whole)/2])
	f.Add(whole[:len(whole)-1], []byte(`{"Owner":1,"End":{"Run":3,"Due`))
	f.Add([]byte("null"), []byte("{}\n[]\n0\n\"\n"))
	f.Add([]byte("\n\n \n"), []byte{0xff, 0, '\n'})
	f.Add([]byte(`{"Owner":1,"End":{"Run":3,"Outcome":"of the future"}}`), bytes.Repeat([]byte("["), 20_000))
	s := spool(f)
	f.Fuzz(func(t *testing.T, before, behind []byte) {
		var text []byte
		if len(before) > 0 {
			text = append(append(text, before...), '\n')
		}
		for range 3 {
			text = append(append(text, whole...), '\n')
		}
		if err := os.WriteFile(s.path(), append(text, behind...), 0o600); err != nil {
			t.Fatal(err)
		}
		got, torn, err := s.Load()
		if err != nil {
			t.Fatal(err)
		}
		found := 0
		for _, o := range got {
			if o.Owner <= 0 || o.End.Run <= 0 {
				t.Fatalf("got an end of nobody's run: %+v", o)
			}
			if o.End.Run == 1<<40 && o.End.Outcome == job.Succeeded && o.End.Reason == (job.Reason{Code: job.ReasonOutputHeld, Text: "a whole line"}) {
				found++
			}
		}
		if found < 3 {
			t.Fatalf("got %d of 3 whole lines, torn %v", found, torn)
		}
	})
}
