package result

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"go-crontab/internal/loop"
	"go-crontab/job"
	"go-crontab/lock"
	"go-crontab/sql"
	"go-crontab/sql/trip"
	"go-crontab/test/faultproxy"
)

// live returns a Live with connections through the proxy.
func (f *fixture) live() *Live {
	return NewLive(f.through.DB, f.log())
}

// tick flushes n times.
func (f *fixture) tick(v *Live, n int) {
	f.Helper()
	for range n {
		if err := v.flush(f.Context()); err != nil {
			f.Fatal(err)
		}
	}
}

// launch returns the n-th launch of the session.
func (f *fixture) launch(n int64) job.Launch { return job.Launch{Run: f.session.id(n), Claim: 1} }

// chunks returns the pieces of an attempt in the table.
func (f *fixture) chunks(l job.Launch) []job.Piece {
	f.Helper()
	pieces, err := f.beside.Chunks(context.Background(), l, 0)
	if err != nil {
		f.Fatal(err)
	}
	return pieces
}

// wantText compares the pieces of an attempt with the written output.
func (f *fixture) wantText(what string, l job.Launch, want string) {
	f.Helper()
	got := ""
	for _, p := range job.Join(f.chunks(l)) {
		got += fmt.Sprintf("[%d]%s", p.At, p.Data)
	}
	if got != want {
		f.Errorf("%s: got %q, want %q", what, got, want)
	}
}

// TestQuickAttemptsCostNothing: attempts that end within the first second, and silent ones, are
// never written.
func TestQuickAttemptsCostNothing(t *testing.T) {
	f := setUp(t)
	v := f.live()
	before := f.proxy.Counts()
	for n := range int64(50) {
		sink := v.Sink(f.launch(n))
		if n%2 == 0 {
			sink([]byte("hello\n"))
		}
	}

	f.tick(v, quietTicks)
	for n := range int64(50) {
		if v.End(f.launch(n)) {
			t.Errorf("attempt %d: said to be written", n)
		}
	}

	f.tick(v, 3)
	if got := f.proxy.Counts(); got.Statements != before.Statements {
		t.Errorf("got %d statements, want none", got.Statements-before.Statements)
	}

	if len(v.streams) != 0 {
		t.Errorf("%d attempts are remembered", len(v.streams))
	}
}

func TestPiecesAreWrittenAsTheyCome(t *testing.T) {
	f := setUp(t)
	v := f.live()
	a, b := f.launch(1), f.launch(2)
	toA, toB := v.Sink(a), v.Sink(b)
	toA([]byte("one "))
	f.tick(v, quietTicks)
	f.wantText("too soon", a, "")
	before := f.proxy.Counts()
	f.tick(v, 1)
	f.wantText("after a while", a, "[0]one ")
	toA([]byte("\xff tw"))
	toA([]byte("o €"[:3]))
	toB([]byte("other"))
	f.tick(v, 1)
	toA([]byte("o €"[3:]))
	f.tick(v, quietTicks)
	f.wantText("it goes on", a, "[0]one \xff two €")
	f.wantText("the other", b, "[0]other")
	if got := f.proxy.Counts(); got.Transactions-before.Transactions != 4 {
		t.Errorf("got %d transactions, want one for each flush with something to write", got.Transactions-before.Transactions)
	}

	f.want("rows: a small piece grows", 2, "SELECT COUNT(*) FROM chunk")
	before = f.proxy.Counts()
	f.tick(v, 5)
	if got := f.proxy.Counts(); got.Statements != before.Statements {
		t.Error("nothing new costs statements")
	}

	if !v.End(a) || !v.End(b) || v.End(a) {
		t.Error("End does not say what was written")
	}

	f.tick(v, 5)
	if got := f.proxy.Counts(); got.Statements != before.Statements {
		t.Error("attempts that are over cost statements")
	}
}

// TestManyPieces: for any writes and any flushes, the table has each byte at its place.
func TestManyPieces(t *testing.T) {
	f := setUp(t)
	v := f.live()
	l := f.launch(3)
	sink := v.Sink(l)
	var all []byte
	for range 60 {
		for range rand.N(5) {
			p := bytes.Repeat([]byte{byte('a' + rand.N(26))}, rand.N(300))
			all = append(all, p...)
			sink(p)
			clear(p) // the sink must not have kept it
		}
		f.tick(v, 1)
	}

	f.wantText("all of it", l, "[0]"+string(all))
	if n := f.number("SELECT COUNT(*) FROM chunk"); n > 2*len(all)/pieceSize+2 {
		t.Errorf("%d rows for %d bytes", n, len(all))
	}
}

// TestAChattyCommand: a command cannot flood the database. Its output is cut to the limit of each
// flush, and to head and tail in all. The remaining bytes are at their places.
func TestAChattyCommand(t *testing.T) {
	f := setUp(t)
	v := f.live()
	l := f.launch(4)
	sink := v.Sink(l)
	at := int64(0)
	write := func(n int) {
		for range n / 1000 {
			p := make([]byte, 1000)
			for i := range p {
				p[i] = byte((at + int64(i)) % 251)
			}
			sink(p)
			at += 1000
		}
	}

	for i := range 40 {
		write(100_000)
		f.tick(v, 1)
		if i < quietTicks {
			continue
		}
		pieces := f.chunks(l)
		kept := int64(0)
		for j, p := range pieces {
			kept += int64(len(p.Data))
			if j > 0 && pieces[j-1].End() > p.At {
				t.Fatalf("pieces overlap: %d and %d", pieces[j-1].End(), p.At)
			}
			for k, b := range p.Data {
				if b != byte((p.At+int64(k))%251) {
					t.Fatalf("byte %d is not what was written there", p.At+int64(k))
				}
			}
		}
		if most := int64(headKept + pendingMost + 2*tailKept + pendingMost); kept > most {
			t.Errorf("%d bytes are kept, want at most %d", kept, most)
		}
		if pieces[0].At != 0 || len(pieces[0].Data) != pendingMost {
			t.Errorf("the beginning is %d bytes at %d", len(pieces[0].Data), pieces[0].At)
		}
		if last := pieces[len(pieces)-1]; i > quietTicks && last.At < at-200_000 {
			t.Errorf("the last piece begins at %d of %d", last.At, at)
		}
	}

	if joined := job.Join(f.chunks(l)); len(joined) < 2 {
		t.Error("no gap is to be seen")
	}

	s := v.streams[l]
	if cap(s.pending) > 2*pendingMost || len(s.tail) > 20 {
		t.Errorf("it holds %d bytes and %d pieces", cap(s.pending), len(s.tail))
	}
}

// TestASlowTalker: slow output over a long time leaves a bounded number of rows.
func TestASlowTalker(t *testing.T) {
	f := setUp(t)
	v := f.live()
	l := f.launch(5)
	sink := v.Sink(l)
	for i := range 900 {
		sink([]byte(strings.Repeat("x", 300) + fmt.Sprintf(" line %d\n", i)))
		f.tick(v, 1)
	}
	pieces := job.Join(f.chunks(l))
	if n := f.number("SELECT COUNT(*) FROM chunk"); n > 2*(headKept+2*tailKept)/pieceSize+4 || len(pieces) != 2 {
		t.Errorf("%d rows, %d pieces, want few and 2", n, len(pieces))
	}
	if len(pieces) == 2 && (len(pieces[0].Data) < headKept || len(pieces[1].Data) < tailKept || !bytes.HasSuffix(pieces[1].Data, []byte("line 899\n"))) {
		t.Errorf("kept are %d and %d bytes, ending in %q", len(pieces[0].Data), len(pieces[1].Data), pieces[1].Data[max(0, len(pieces[1].Data)-20):])
	}
}

// TestAllShare: many chatty attempts together write no more than the limit of a flush, in equal
// shares.
func TestAllShare(t *testing.T) {
	f := setUp(t)
	v := f.live()
	const n = 100
	for i := range int64(n) {
		v.Sink(f.launch(i))(make([]byte, pendingMost))
	}
	f.tick(v, quietTicks+1)
	f.want("bytes", n*(flushMost/n), "SELECT SUM(LENGTH(data)) FROM chunk")
	f.want("attempts", n, "SELECT COUNT(DISTINCT run_id) FROM chunk")
	f.tick(v, 3)
	f.want("bytes, after a while", n*pendingMost, "SELECT SUM(LENGTH(data)) FROM chunk")
}

// TestFlushFates: whatever happens to a flush, the next one repairs it, and no piece is there
// twice.
func TestFlushFates(t *testing.T) {
	t.Parallel()
	insert, commit := faultproxy.SQL("INSERT INTO chunk"), faultproxy.CommitOf("INSERT INTO chunk")
	for name, rule := range map[string]faultproxy.Rule{
		"the reply is lost":        {Match: commit, Action: faultproxy.CutAfter()},
		"the commit never arrives": {Match: commit, Action: faultproxy.CutBefore()},
		"the link is cut":          {Match: insert, Action: faultproxy.CutBefore()},
		"the disk is full":         {Match: insert, Action: faultproxy.Error(1114, "HY000", "full")},
		"a comma is missing":       {Match: insert, Action: faultproxy.Error(1064, "42000", "syntax")},
	} {
		t.Run(name, func(t *testing.T) {
			f := setUp(t)
			v := f.live()
			l := f.launch(1)
			sink := v.Sink(l)
			sink([]byte("one "))
			f.tick(v, quietTicks)

			f.proxy.Add(rule)
			if err := v.flush(t.Context()); err == nil {
				t.Fatal("the fault was not noticed")
			}

			sink([]byte("two "))
			f.tick(v, 1)
			sink([]byte("three"))
			f.tick(v, 3)
			f.wantText("at last", l, "[0]one two three")
			if !v.End(l) {
				t.Error("End does not say that pieces may have been written")
			}
		})
	}
}

// TestEndWaitsForAFlush: after End has returned, no piece of the attempt can arrive any more.
func TestEndWaitsForAFlush(t *testing.T) {
	f := setUp(t)
	v := f.live()
	a, b := f.launch(1), f.launch(2)
	v.Sink(a)([]byte("carried"))
	held := f.proxy.Add(faultproxy.Rule{Match: faultproxy.CommitOf("INSERT INTO chunk"), Action: faultproxy.HoldBefore(0)})
	f.tick(v, quietTicks)
	flushed := make(chan error, 1)
	go func() { flushed <- v.flush(context.Background()) }()
	if err := held.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}

	v.Sink(b)([]byte("not on board"))
	if v.End(b) {
		t.Error("said to be written: what came later")
	}

	ended := make(chan bool, 1)
	go func() { ended <- v.End(a) }()
	select {
	case <-ended:
		t.Error("End came back while its pieces were under way")
	case <-time.After(50 * time.Millisecond):
	}

	held.Release()
	if !<-ended {
		t.Error("said not to be written")
	}
	if err := <-flushed; err != nil {
		t.Fatal(err)
	}

	f.wantText("it arrived before", a, "[0]carried")
}

// pieces writes two pieces of the output of a launch.
func (f *fixture) pieces(l trip.Launch) {
	f.exec("INSERT INTO chunk (run_id, claim, at_byte, data) VALUES (?, ?, 0, 'a'), (?, ?, 1, 'b')", l.Run, l.Claim, l.Run, l.Claim)
}

// TestPiecesGoWithTheEnd: the transaction that writes a run's end removes its pieces, and no
// others. Runs without pieces cost no statement.
func TestPiecesGoWithTheEnd(t *testing.T) {
	f := setUp(t)
	all := f.executing(4)
	var deletes []string
	var mu sync.Mutex
	f.proxy.OnCommand(func(c faultproxy.Command) {
		if strings.Contains(c.SQL, "FROM chunk c") {
			mu.Lock()
			defer mu.Unlock()
			deletes = append(deletes, c.SQL)
		}
	})
	f.put(all[0])
	if len(deletes) != 0 {
		t.Errorf("a run without pieces: %q", deletes)
	}
	for _, e := range all[1:] {
		f.pieces(e.Launch)
	}
	all[1].Live, all[2].Live = true, true
	all[2].Again, all[2].Final = 5000, false // this attempt is over, another one follows
	f.put(all[1:3]...)
	f.want("pieces of the one that executes", 2, "SELECT COUNT(*) FROM chunk WHERE run_id = ?", all[3].Run)
	f.want("pieces", 2, "SELECT COUNT(*) FROM chunk")
	f.want("runs", 3, "SELECT COUNT(*) FROM run WHERE state = 'ended'")
	f.want("next attempts", 1, "SELECT COUNT(*) FROM run WHERE state = 'idle' AND attempt = 2 AND due_now = 5000")
	if len(deletes) != 2 {
		t.Errorf("got %q, want one statement for each sort of end", deletes)
	}

	// A run that a peer has ended in between needs no pieces either. Its outcome stays.
	all[3].Live = true
	f.exec("UPDATE run SET state = 'ended', owner = -2, outcome = 'lost' WHERE id = ?", all[3].Run)
	f.put(all[3])
	f.want("runs that a peer has ended", 1, "SELECT COUNT(*) FROM run WHERE outcome = 'lost'")
}

// TestSweep: a sweep removes pieces of ended runs, and no others.
func TestSweep(t *testing.T) {
	f := setUp(t)
	all := f.executing(2)
	executing, over := all[0].Launch, all[1].Launch
	f.exec("UPDATE run SET state = 'ended', owner = -2 WHERE id = ?", over.Run)
	other := trip.Launch{Run: 8 << 32, Claim: 1}
	for _, l := range []trip.Launch{executing, over, other} {
		f.pieces(l)
	}

	v := f.live()
	for range 2 {
		if err := v.sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		f.want("pieces", 2, "SELECT COUNT(*) FROM chunk")
		f.wantText("those of the one that executes", executing, "[0]ab")
	}

	err := f.beside.Tx(t.Context(), func(tx *sql.Tx) error {
		var chunks []trip.Chunk
		for n := range int64(2*sweepBatch + 7) {
			chunks = append(chunks, trip.Chunk{Launch: trip.Launch{Run: 8<<32 + n, Claim: 1}, Piece: job.Piece{Data: []byte("x")}})
		}
		return trip.PutChunks(tx, chunks)
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := v.sweep(t.Context()); err != nil {
		t.Fatal(err)
	}

	f.want("pieces, of many", 2, "SELECT COUNT(*) FROM chunk")
}

// TestLostRunsKeepTheirPieces: the live output of a dead node's runs becomes their output, and the
// pieces go.
func TestLostRunsKeepTheirPieces(t *testing.T) {
	f := setUp(t)
	all := f.executing(3)
	f.pieces(all[0].Launch)
	long := strings.Repeat("line\n", 1000)
	f.exec("INSERT INTO chunk (run_id, claim, at_byte, data) VALUES (?, 1, 100, ?)", all[1].Run, long)
	reaper := NewReaper(ReaperConfig{
		DB: f.through.DB, Exclusion: lock.New(f.through.DB, lock.Unmeasured{}, f.log()), Session: &testSession{number: 8, now: 5000},
		Log: f.log(),
	})

	if lost, _, err := reaper.Reap(t.Context()); lost != 3 || err != nil {
		t.Fatalf("got %d, %v; want 3 lost runs", lost, err)
	}

	f.want("pieces", 0, "SELECT COUNT(*) FROM chunk")
	for i, want := range []job.Output{
		{Head: []byte("ab"), Bytes: 2}, {Tail: []byte(long), Bytes: 100 + int64(len(long))}, {},
	} {
		run, err := f.beside.Run(t.Context(), all[i].Run)
		if err != nil {
			t.Fatal(err)
		}
		same := bytes.Equal(run.Output.Head, want.Head) && bytes.Equal(run.Output.Tail, want.Tail) && run.Output.Bytes == want.Bytes
		if run.Outcome != job.Lost || run.Reason.Code != job.ReasonNodeLost || !same {
			t.Errorf("run %d: got %s with %d bytes: %q", i, run.Outcome, run.Output.Bytes, run.Output.Text())
		}
	}
}

// TestReaperComesBack: a look reports runs that it left because their jobs are locked, and the next
// look ends them.
func TestReaperComesBack(t *testing.T) {
	f := setUp(t)
	all := f.executing(2)
	locked, err := f.beside.Raw().Begin()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := locked.Exec("UPDATE job SET begun_to = begun_to WHERE id = ?", all[0].JobID); err != nil {
		t.Fatal(err)
	}
	reaper := NewReaper(ReaperConfig{
		DB: f.through.DB, Exclusion: lock.New(f.through.DB, lock.Unmeasured{}, f.log()), Session: &testSession{number: 8, now: 5000},
		Log: f.log(),
	})
	busy := int64(0)
	for _, e := range all {
		if e.JobID == all[0].JobID {
			busy++
		}
	}
	if lost, left, err := reaper.Reap(t.Context()); int64(lost) != int64(len(all))-busy || !left || err != nil {
		t.Fatalf("got %d lost, some left: %v, %v; want %d and some left", lost, left, err, int64(len(all))-busy)
	}

	if err := locked.Rollback(); err != nil {
		t.Fatal(err)
	}
	if lost, left, err := reaper.Reap(t.Context()); int64(lost) != busy || left || err != nil {
		t.Fatalf("got %d lost, some left: %v, %v; want %d and none left", lost, left, err, busy)
	}
}

// TestReaperReleases: the prepared runs of a dead session become idle, for any due time, except for
// locked ones.
func TestReaperReleases(t *testing.T) {
	f := setUp(t)
	const row = "INSERT INTO run (id, job_id, app_id, due, kind, state, owner, claim, due_now, hash) VALUES (?, 1, 1, ?, 'schedule', 'prepared', ?, 1, ?, 0)"
	for i, owner := range []int{7, 7, 7, 8} {
		due := 1000 * (i + 1)
		f.exec(row, 100+i, due, owner, due)
	}
	f.exec("INSERT IGNORE INTO session (id, node, address, pid, started, beat, beat_at) SELECT session, node, '', 1, 0, 1, 0 FROM life WHERE id = 8")
	f.exec("DELETE FROM session WHERE id = (SELECT session FROM life WHERE id = 7)")
	locked, err := f.beside.Raw().Begin()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := locked.Exec("UPDATE run SET due_now = due_now WHERE id = 102"); err != nil {
		t.Fatal(err)
	}
	woken := make(loop.Wake, 10)
	reaper := NewReaper(ReaperConfig{
		DB: f.through.DB, Exclusion: lock.New(f.through.DB, lock.Unmeasured{}, f.log()), Session: &testSession{number: 8, now: 1500},
		WakeOverdue: woken, Log: f.log(),
	})
	reap := func() {
		if lost, _, err := reaper.Reap(t.Context()); lost != 0 || err != nil {
			t.Fatalf("got %d lost runs, %v; want none", lost, err)
		}
	}
	want := func(when, want string) {
		var rows string
		query := "SELECT GROUP_CONCAT(CONCAT_WS(' ', id, state, owner) ORDER BY id SEPARATOR ', ') FROM run"
		if err := f.beside.Raw().QueryRow(query).Scan(&rows); err != nil || rows != want {
			t.Errorf("%s: got %q, %v; want %q", when, rows, err, want)
		}
	}

	reap()
	want("while one is locked", "100 idle 0, 101 idle 0, 102 prepared 7, 103 prepared 8")
	if err := locked.Rollback(); err != nil {
		t.Fatal(err)
	}
	reap()
	want("later", "100 idle 0, 101 idle 0, 102 idle 0, 103 prepared 8")
	if n := len(woken); n != 2 {
		t.Errorf("others were woken %d times, want twice", n)
	}
}

func TestLiveRuns(t *testing.T) {
	f := setUp(t)
	v := f.live()
	ctx, stop := context.WithCancelCause(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- v.Run(ctx) }()
	l := f.launch(1)
	var wg sync.WaitGroup
	for n := range int64(20) { // others come and go meanwhile
		wg.Go(func() {
			for i := range int64(20) {
				sink := v.Sink(f.launch(100 + 20*n + i))
				sink([]byte("x"))
				time.Sleep(time.Millisecond)
				v.End(f.launch(100 + 20*n + i))
			}
		})
	}

	v.Sink(l)([]byte("hello"))
	for until := time.Now().Add(20 * time.Second); len(f.chunks(l)) == 0; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatal("not within 20 s: the output is written")
		}
	}

	wg.Wait()
	over := errors.New("over")
	stop(over)
	if err := <-ended; err != over {
		t.Errorf("got %v, want %v", err, over)
	}
}
