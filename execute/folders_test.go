package execute

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go-crontab/job"
)

// TestAFolderThatHangs: commands in a folder on a dead file server are given back, and fail after a long silence. All
// of them share one waiting goroutine, and no other command waits for them.
func TestAFolderThatHangs(t *testing.T) {
	t.Parallel()
	s, gone := shell(t), t.TempDir()
	var asked atomic.Int64
	back := make(chan struct{})
	s.folders.stat = func(path string) (os.FileInfo, error) {
		if path == gone {
			asked.Add(1)
			<-back
		}
		return os.Stat(path)
	}

	there := func(soon time.Duration) Attempt {
		a := attempt("pwd")
		a.Options.Dir, a.BeginBy = gone, time.Now().Add(soon)
		return a
	}

	for range 3 {
		began := time.Now()
		if res := run(t, s, there(100*time.Millisecond)); res.Outcome != job.Missed {
			t.Errorf("got %v %q, want that it is given back", res.Outcome, res.Reason)
		}
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("it was given back after %v", took)
		}
	}

	if res := run(t, s, attempt("true")); res.Outcome != job.Succeeded {
		t.Errorf("in another folder: got %v %q", res.Outcome, res.Reason)
	}

	if res := s.Execute(endsSoon(t, ErrKilled), there(time.Minute)); res.Outcome != job.Killed || res.Reason.Text != ErrKilled.Error() {
		t.Errorf("killed meanwhile: got %v %q", res.Outcome, res.Reason)
	}

	s.folders.mu.Lock()
	s.folders.asked[gone].since = time.Now().Add(-time.Minute)
	s.folders.mu.Unlock()
	if res := run(t, s, there(time.Minute)); res.Outcome != job.Failed || !strings.Contains(res.Reason.Text, gone+" has not responded for 1m;") {
		t.Errorf("after a minute: got %v %q", res.Outcome, res.Reason)
	}

	if n := asked.Load(); n != 1 {
		t.Errorf("it was asked for %d times at once", n)
	}

	close(back)
	eventually(t, "the answer", func() bool {
		s.folders.mu.Lock()
		defer s.folders.mu.Unlock()
		return len(s.folders.asked) == 0
	})

	if res := run(t, s, there(time.Minute)); res.Outcome != job.Succeeded || strings.TrimSpace(string(res.Output.Head)) != unlinked(t, gone) {
		t.Errorf("when it is back: got %v %q, %q", res.Outcome, res.Reason, res.Output.Head)
	}
}

// TestManyFoldersThatHang: any number of hanging folders takes at most mostAsked threads. Commands in further folders
// are given back, and fail after a long silence of all.
func TestManyFoldersThatHang(t *testing.T) {
	t.Parallel()
	s, gone := shell(t), filepath.Join(t.TempDir(), "gone")
	var asked atomic.Int64
	back := make(chan struct{})
	s.folders.stat = func(path string) (os.FileInfo, error) {
		if filepath.Dir(path) == gone {
			asked.Add(1)
			<-back
		}
		return os.Stat(path)
	}

	in := func(dir string, soon time.Duration) Attempt {
		a := attempt("true")
		a.Options.Dir, a.BeginBy = dir, time.Now().Add(soon)
		return a
	}

	var all sync.WaitGroup

	for i := range 2 * mostAsked {
		all.Go(func() {
			if res := run(t, s, in(filepath.Join(gone, strconv.Itoa(i)), time.Second)); res.Outcome != job.Missed {
				t.Errorf("got %v %q, want that it is given back", res.Outcome, res.Reason)
			}
		})
	}

	all.Wait()
	if n := asked.Load(); n != mostAsked { // each attempt that was given back waited for a second
		t.Errorf("%d folders were asked, want %d", n, mostAsked)
	}

	well := t.TempDir()
	if res := run(t, s, in(well, 100*time.Millisecond)); res.Outcome != job.Missed {
		t.Errorf("in a folder that is well: got %v %q, want that it is given back", res.Outcome, res.Reason)
	}

	s.folders.mu.Lock()

	for _, q := range s.folders.asked {
		q.since = q.since.Add(-time.Minute)
	}

	s.folders.mu.Unlock()
	if res := run(t, s, in(well, time.Minute)); res.Outcome != job.Failed || !strings.Contains(res.Reason.Text, well+" cannot be checked: 256 other directories have not") {
		t.Errorf("after a minute: got %v %q", res.Outcome, res.Reason)
	}

	close(back)
	eventually(t, "the answers", func() bool {
		s.folders.mu.Lock()
		defer s.folders.mu.Unlock()
		return len(s.folders.asked) == 0
	})

	if res := run(t, s, in(well, time.Minute)); res.Outcome != job.Succeeded {
		t.Errorf("when they are back: got %v %q", res.Outcome, res.Reason)
	}
}

// TestAFolderThatIsSlow: commands begin even in a folder that always answers after their time to begin.
func TestAFolderThatIsSlow(t *testing.T) {
	t.Parallel()
	s, slow := shell(t), t.TempDir()
	s.folders.stat = func(path string) (os.FileInfo, error) {
		time.Sleep(1500 * time.Millisecond)
		return os.Stat(path)
	}
	res := job.Result{Outcome: job.Missed}
	for tries := 0; res.Outcome == job.Missed && tries < 4; tries++ {
		a := attempt("true")
		a.Options.Dir, a.BeginBy = slow, time.Now().Add(time.Second)
		res = run(t, s, a)
		if tries == 0 && res.Outcome != job.Missed {
			t.Errorf("at first: got %v %q, want that it is given back", res.Outcome, res.Reason)
		}
		time.Sleep(time.Second) // until a node claims it again
	}
	if res.Outcome != job.Succeeded {
		t.Errorf("got %v %q", res.Outcome, res.Reason)
	}
}

func unlinked(t *testing.T, path string) string {
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// TestAForkThatHangs: while the fork of one command hangs, the others are given back or killed in time.
func TestAForkThatHangs(t *testing.T) {
	t.Parallel()
	s := shell(t)
	<-s.fork
	began := time.Now()
	a := attempt("true")
	a.BeginBy = began.Add(200 * time.Millisecond)
	if res := run(t, s, a); res.Outcome != job.Missed {
		t.Errorf("got %v %q, want that it is given back", res.Outcome, res.Reason)
	}
	a.BeginBy = time.Now().Add(time.Minute)
	if res := s.Execute(endsSoon(t, ErrKilled), a); res.Outcome != job.Killed || res.Reason.Text != ErrKilled.Error() {
		t.Errorf("killed meanwhile: got %v %q", res.Outcome, res.Reason)
	}
	a.May = func() bool { return false }
	if res := s.Execute(endsSoon(t, errors.New("the node stops")), a); res.Outcome != job.Missed {
		t.Errorf("where nothing may begin any more: got %v %q, want that it is given back", res.Outcome, res.Reason)
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("that took %v", took)
	}
	s.fork <- struct{}{}
	if res := run(t, s, attempt("true")); res.Outcome != job.Succeeded {
		t.Errorf("when it is over: got %v %q", res.Outcome, res.Reason)
	}
}

// endsSoon returns a context that ends in a moment.
func endsSoon(t *testing.T, cause error) context.Context {
	ctx, end := context.WithCancelCause(t.Context())
	time.AfterFunc(100*time.Millisecond, func() { end(cause) })
	return ctx
}
