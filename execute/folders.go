package execute

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"
)

// folders finds out whether the folders answer in which commands are to begin. One on a file server that is gone does not,
// for as long as the kernel tries. Met by a child that has no program yet, that would stop this whole process: until the
// child has one, the runtime holds for it a processor that it cannot take away, and the next garbage collection waits for
// that. So a goroutine asks first, one for each folder however many commands are to begin there.
type folders struct {
	stat func(string) (os.FileInfo, error)

	mu    sync.Mutex
	asked map[string]*question // what has no answer yet
}

type question struct {
	since    time.Time
	answered chan struct{}
	there    bool // there is such a folder, as far as this process may see; once answered
}

func newFolders() folders { return folders{stat: os.Stat, asked: map[string]*question{}} }

// silence is how long a folder may take to answer, which one that has to be mounted first does. Until then an attempt is
// given back when its time to begin is over; then it fails, so that somebody learns what is wrong.
const silence = 10 * time.Second

// await returns once a folder has answered, and tells whether it is there.
func (f *folders) await(ctx context.Context, a Attempt, dir string) (there bool, err error) {
	q := f.ask(dir)
	by := q.since.Add(silence)
	if !a.BeginBy.IsZero() && a.BeginBy.Before(by) {
		by = a.BeginBy
	}
	err = a.await(ctx, q.answered, by)
	if took := time.Since(q.since); errors.Is(err, errLate) && took >= silence {
		return false, fmt.Errorf("start bash in its directory: %s has not answered for %v; is the server that it is on gone?", dir, took.Truncate(time.Second))
	}
	return err == nil && q.there, err
}

// ask asks whether a folder is there, unless that is being asked.
func (f *folders) ask(dir string) *question {
	f.mu.Lock()
	defer f.mu.Unlock()
	if q := f.asked[dir]; q != nil {
		return q
	}
	q := &question{since: time.Now(), answered: make(chan struct{})}
	f.asked[dir] = q
	go func() {
		info, err := f.stat(dir)
		q.there = err == nil && info.IsDir()
		f.mu.Lock()
		delete(f.asked, dir)
		f.mu.Unlock()
		close(q.answered)
	}()
	return q
}
