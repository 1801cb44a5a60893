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

// folders checks that the folders of commands answer. The kernel may wait very long for a folder
// on a dead file server. A forked child that waits for such a folder before its exec would stop
// this whole process. Until the exec, the runtime cannot take back the processor that it holds for
// the child, and the next garbage collection waits for that processor. So a goroutine asks for the
// folder first. One goroutine asks for any number of commands in the same folder.
type folders struct {
	stat func(string) (os.FileInfo, error)

	mu    sync.Mutex
	asked map[string]*question // without an answer yet; at most mostAsked
	kept  map[string]*question // answered too late for an attempt, at most keep ago
}

// question is a folder's pending or answered stat.
type question struct {
	dir      string
	since    time.Time
	late     bool // an attempt gave up waiting for the answer
	answered chan struct{}
	there    bool // the folder exists and this process may see it; valid once answered
}

func newFolders() folders {
	return folders{stat: os.Stat, asked: map[string]*question{}, kept: map[string]*question{}}
}

const (
	// silence is the time that a folder may take to answer, for example because it must be mounted
	// first. If the attempt's time to begin ends earlier, the attempt is given back. After silence
	// the attempt fails, so that the user learns the cause.
	silence = 10 * time.Second

	// keep is how long a late answer stays valid. An answer is late if an attempt gave up waiting
	// for it. The node starts that attempt again within this time. If late answers were dropped, a
	// folder that always answers late would hold up its jobs for ever.
	keep = 5 * time.Second

	// mostAsked bounds the folders that are asked at once. A folder that does not answer holds a thread, and Go allows
	// 10,000 threads.
	mostAsked = 256
)

// await waits until a folder has answered, and reports whether it exists.
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
		case err == nil: // another folder has answered, so there is room to ask
		case !errors.Is(err, errLate) || took < silence:
			f.missed(q)
			return false, err
		case q.dir == dir:
			return false, silent("%s has not responded for %s; check the file server that it is on",
				dir, job.Duration(took.Truncate(time.Second)))
		case f.ask(dir) == q:
			return false, silent("%s cannot be checked: "+
				"%d other directories have not responded for %v or longer, %s among them; check their file servers",
				dir, mostAsked, took.Truncate(time.Second), q.dir)
		}
	}
}

// silent is the error of an attempt whose directory does not answer.
func silent(format string, args ...any) error {
	return job.Coded(job.ReasonDirectoryUnavailable, fmt.Errorf("directory: "+format, args...))
}

// ask returns the pending or kept question for a folder, or asks a new one. If too many questions
// are pending, it returns the latest of them instead. If the folder of that question is silent for
// long, all the others are, too.
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

// forget removes an answered question. If an attempt gave up waiting, forget keeps the answer for
// a while.
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

// missed notes that an attempt gave up waiting for an answer.
func (f *folders) missed(q *question) {
	f.mu.Lock()
	defer f.mu.Unlock()
	q.late = true
}
