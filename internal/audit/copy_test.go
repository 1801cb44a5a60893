package audit

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go-crontab/job"
)

// copierTo returns a copier with its position in a folder, and a count of its failed tries.
func (p *place) copierTo(dir string, sink Sink) (c *Copier, failed *int) {
	tally := new(tally)
	return NewCopier(CopierConfig{
		DB: p.db, Sink: sink, Dir: dir, Metrics: tally, Log: slog.New(slog.NewTextHandler(p.Output(), nil)),
	}), &tally.failed
}

// tally counts failed tries.
type tally struct{ failed int }

func (t *tally) AuditLogFailed() { t.failed++ }

func (p *place) file(path string) Sink {
	p.Helper()
	sink, err := OpenSink(path)
	if err != nil {
		p.Fatal(err)
	}
	p.Cleanup(func() { sink.Close() })
	return sink
}

// copies runs a copier until it has copied everything.
func (p *place) copies(c *Copier) {
	p.Helper()
	for {
		more, err := c.step(p.Context())
		if err != nil {
			p.Fatal(err)
		}
		if !more {
			return
		}
	}
}

// read returns the numbers of the links in a copy.
func (p *place) read(path string) (seqs []int64, lines []copied) {
	p.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		p.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		var l copied
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			p.Logf("torn line %q", line)
			continue
		}
		seqs, lines = append(seqs, l.Seq), append(lines, l)
	}
	return seqs, lines
}

func (p *place) wantSeqs(path string, from, to int64) {
	p.Helper()
	got, _ := p.read(path)
	var want []int64
	for seq := from; seq <= to; seq++ {
		want = append(want, seq)
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		p.Fatalf("%s has the links %v, want %v", filepath.Base(path), got, want)
	}
}

// TestCopies: from the first look on, a file gets each line of the cluster, across restarts and
// rotations. Its hashes can be used to check the chain.
func TestCopies(t *testing.T) {
	p := setUp(t)
	dir, path := t.TempDir(), filepath.Join(t.TempDir(), "audit.log")
	p.lines(3, p.now)
	p.chain()
	c, _ := p.copierTo(dir, p.file(path))
	p.copies(c)
	p.wantSeqs(path, 1, 0) // earlier lines are not copied

	p.lines(2*copyBatch+7, p.now)
	p.chain()
	p.copies(c)
	p.wantSeqs(path, 4, 2*copyBatch+10)
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file has mode %v, %v", info.Mode(), err)
	}
	_, lines := p.read(path)
	if l := lines[5]; l.Who != "ann" || l.Name != "täglich" || string(l.Became) != `{"a": 1}` &&
		string(l.Became) != `{"a":1}` || l.Ref != 5 {
		t.Errorf("a line is not what was written: %+v", l)
	}
	head, err := job.ParseHead(fmt.Sprintf("%d:%s", lines[5].Seq, lines[5].Hash))
	if err != nil {
		t.Fatal(err)
	}
	if what, err := CheckHead(t.Context(), p.db, head, Kept); err != nil || what != "" {
		t.Errorf("the head of a copied line: %q, %v", what, err)
	}

	old := path + ".1"
	if err := os.Rename(path, old); err != nil {
		t.Fatal(err)
	}
	p.lines(3, p.now)
	p.chain()
	c, _ = p.copierTo(dir, p.file(path)) // after a restart
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	p.copies(c)
	p.wantSeqs(path, 2*copyBatch+11, 2*copyBatch+13)
}

// TestCopyAfterARestore: the database is an older one. Lines younger than the last copied line are
// copied.
func TestCopyAfterARestore(t *testing.T) {
	p := setUp(t)
	dir, path := t.TempDir(), filepath.Join(t.TempDir(), "audit.log")
	c, _ := p.copierTo(dir, p.file(path))
	p.copies(c)
	p.lines(10, p.now)
	p.chain()
	p.copies(c)
	p.wantSeqs(path, 1, 10)

	p.exec("DELETE FROM audit WHERE ref > 5")
	p.exec("DELETE FROM audit_chain WHERE seq > 6")
	p.chainer = p.newChainer(p.session)
	p.lines(8, p.now.Add(time.Minute))
	p.chain()
	c, _ = p.copierTo(dir, p.file(path+".2"))
	p.copies(c)
	p.wantSeqs(path+".2", 7, 14)
}

// brokenSink fails until it is repaired.
type brokenSink struct {
	mu     sync.Mutex
	broken bool
	lines  int
}

func (b *brokenSink) Whole() bool  { return true }
func (b *brokenSink) Close() error { return nil }

func (b *brokenSink) Write(lines [][]byte) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.broken {
		return os.ErrDeadlineExceeded
	}
	b.lines += len(lines)
	return nil
}

// TestBrokenSink: failed tries are counted, logged once, and lose no line.
func TestBrokenSink(t *testing.T) {
	p := setUp(t)
	sink := &brokenSink{broken: true}
	var log strings.Builder
	c, failed := p.copierTo(t.TempDir(), sink)
	c.Log = slog.New(slog.NewTextHandler(&log, nil))
	p.copies(c)
	p.lines(5, p.now)
	p.chain()
	for range 3 {
		_, err := c.step(t.Context())
		c.tell(err)
	}

	sink.broken = false
	_, err := c.step(t.Context())
	c.tell(err)
	if *failed != 3 || sink.lines != 5 || strings.Count(log.String(), "cannot copy audit lines") != 1 ||
		strings.Count(log.String(), "copying audit lines") != 1 {
		t.Errorf("got %d failed tries, %d lines, and the log %s", *failed, sink.lines, log.String())
	}
}

// TestTornFile: a line that a crash cut off stays as it is, and the next one starts on a new line.
func TestTornFile(t *testing.T) {
	p := setUp(t)
	path := filepath.Join(t.TempDir(), "audit.log")
	if err := os.WriteFile(path, []byte(`{"seq":1}`+"\n"+`{"seq":2,"ha`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := p.file(path).Write([][]byte{[]byte(`{"seq":2}`), []byte(`{"seq":3}`)}); err != nil {
		t.Fatal(err)
	}
	p.wantSeqs(path, 1, 3)
	for _, target := range []string{"audit.log", "", "/nowhere/audit.log", t.TempDir()} {
		if _, err := OpenSink(target); err == nil || !strings.Contains(err.Error(), "audit log") {
			t.Errorf("%q: got %v", target, err)
		}
	}
}

// TestSyslog: lines reach the local socket without definitions, even after its daemon was
// restarted.
func TestSyslog(t *testing.T) {
	t.Parallel()
	socket := filepath.Join(t.TempDir(), "log")
	listen := func() *net.UnixConn {
		l, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	hears := func(l *net.UnixConn, want string) {
		t.Helper()
		buf := make([]byte, 1<<16)
		l.SetReadDeadline(time.Now().Add(10 * time.Second))
		n, err := l.Read(buf)
		if got := string(buf[:n]); err != nil || !strings.HasPrefix(got, "<85>") ||
			!strings.HasSuffix(got, fmt.Sprintf("go-crontab[%d]: %s", os.Getpid(), want)) {
			t.Fatalf("got %q, %v", got, err)
		}
	}

	l := listen()
	s, err := newSyslog(filepath.Join(t.TempDir(), "none"), socket)
	if err != nil || s.Whole() {
		t.Fatal(err)
	}
	if err := s.Write([][]byte{[]byte("one"), []byte("two")}); err != nil {
		t.Fatal(err)
	}
	hears(l, "one")
	hears(l, "two")

	l.Close()
	os.Remove(socket)
	if err := s.Write([][]byte{[]byte("three")}); err == nil {
		t.Error("nobody listens, and that is no error")
	}
	l = listen()
	defer l.Close()
	if err := s.Write([][]byte{[]byte("three")}); err != nil {
		t.Fatal(err)
	}
	hears(l, "three")

	// If the daemon does not read, the buffer fills and the write times out.
	for n := 0; ; n++ {
		if err := s.Write([][]byte{make([]byte, 1<<12)}); err != nil {
			break
		}
		if n > 100_000 {
			t.Fatal("a full socket takes everything")
		}
	}
}
