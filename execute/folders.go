package execute

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"go-crontab/job"
)

// folders finds out whether the folders answer in which commands are to begin. One on a file server that is gone does
// not, for as long as the kernel tries. Met by a child that has no program yet, that would stop this whole process:
// until the child has one, the runtime holds for it a processor that it cannot take away, and the next garbage
// collection waits for that. So a goroutine asks first, one for each folder however many commands are to begin there.
type folders struct {
	stat func(string) (os.FileInfo, error)

	mu    sync.Mutex
	asked map[string]*question // what has no answer yet, mostAsked at most
	kept  map[string]*question // what was answered a moment ago, too late for somebody
}

type question struct {
	dir      string
	since    time.Time
	late     bool // somebody did not wait for the answer
	answered chan struct{}
	there    bool // there is such a folder, as far as this process may see; once answered
}

func newFolders() folders {
	return folders{stat: os.Stat, asked: map[string]*question{}, kept: map[string]*question{}}
}

const (
	// silence is how long a folder may take to answer, which one that has to be mounted first does. Until then an
	// attempt is given back when its time to begin is over; then it fails, so that somebody learns what is wrong.
	silence = 10 * time.Second

	// keep is how long an answer is gone by that came too late for an attempt: it comes again within that. Else a
	// folder that always takes longer than there is time to begin would hold up its jobs for ever.
	keep = 5 * time.Second

	// mostAsked is how many folders may be asked at once. One that does not answer holds a thread, of which Go bears
	// 10,000.
	mostAsked = 256
)

// await returns once a folder has answered, and tells whether it is there.
func (f *folders) await(ctx context.Context, a Attempt, dir string) (there bool, err error) {
	for {
		q := f.ask(dir)
		by := q.since.Add(silence)
		if !a.BeginBy.IsZero() && a.BeginBy.Before(by) {
			by = a.BeginBy
		}
		err = a.await(ctx, q.answered, by)
		took := time.Since(q.since)
		switch {
		case err == nil && q.dir == dir:
			return q.there, nil
		case err == nil: // there is room to ask
		case !errors.Is(err, errLate) || took < silence:
			f.missed(q)
			return false, err
		case q.dir == dir:
			return false, silent("%s has not answered for %v; is the server that it is on gone?", dir, took.Truncate(time.Second))
		case f.ask(dir) == q:
			return false, silent("nobody can tell whether %s would answer: %d other directories have not for %v or longer, %s is one; is the server that they are on gone?",
				dir, mostAsked, took.Truncate(time.Second), q.dir)
		}
	}
}

// silent is the error of an attempt whose directory does not answer.
func silent(format string, args ...any) error {
	return job.Coded(job.ReasonDirectoryUnavailable, fmt.Errorf("start bash in its directory: "+format, args...))
}

// ask asks whether a folder is there, unless that is being asked. Where too many are being asked already, it returns
// the question that was asked last instead: if that has been silent for long, all have.
func (f *folders) ask(dir string) *question {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, m := range []map[string]*question{f.asked, f.kept} {
		if q := m[dir]; q != nil {
			return q
		}
	}
	if len(f.asked) >= mostAsked {
		var last *question
		for _, q := range f.asked {
			if last == nil || q.since.After(last.since) {
				last = q
			}
		}
		return last
	}
	q := &question{dir: dir, since: time.Now(), answered: make(chan struct{})}
	f.asked[dir] = q
	go func() {
		info, err := f.stat(dir)
		q.there = err == nil && info.IsDir()
		f.forget(q)
		close(q.answered)
	}()
	return q
}

// forget is for a question that has its answer, which is kept where somebody did not wait for it.
func (f *folders) forget(q *question) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.asked, q.dir)
	if q.late {
		f.kept[q.dir] = &question{dir: q.dir, since: time.Now(), answered: q.answered, there: q.there}
		time.AfterFunc(keep, func() {
			f.mu.Lock()
			defer f.mu.Unlock()
			delete(f.kept, q.dir)
		})
	}
}

// missed notes that somebody did not wait for an answer.
func (f *folders) missed(q *question) {
	f.mu.Lock()
	defer f.mu.Unlock()
	q.late = true
}
