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

// folders checks that the folders of commands answer. A folder on a dead file server does not answer for as long as
// the kernel tries. A forked child that waits for it before its exec would stop this whole process: until the exec,
// the runtime cannot take back the processor that it holds for the child, and the next garbage collection waits for
// it. So a goroutine asks first, one per folder for any number of commands.
type folders struct {
	stat func(string) (os.FileInfo, error)

	mu    sync.Mutex
	asked map[string]*question // without an answer, mostAsked at most
	kept  map[string]*question // answered within keep, too late for an attempt
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
	// silence is the time that a folder may take to answer, for example because it must be mounted first. Before that,
	// an attempt whose time to begin is over is given back. After that it fails, so that the user learns the cause.
	silence = 10 * time.Second

	// keep is the time that an answer stays valid if it came too late for an attempt, which returns within that time.
	// Otherwise a folder that always answers too late would hold up its jobs for ever.
	keep = 5 * time.Second

	// mostAsked is the number of folders that are asked at once. A silent one holds a thread, of which Go allows
	// 10,000.
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
		case err == nil: // there is room to ask
		case !errors.Is(err, errLate) || took < silence:
			f.missed(q)
			return false, err
		case q.dir == dir:
			return false, silent("%s has not responded for %v; check the file server that it is on",
				dir, took.Truncate(time.Second))
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

// ask returns the pending or kept question for a folder, and asks a new one if there is none. If too many are
// pending, it returns the latest of them instead: if that one has been silent for long, all have.
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

// forget removes an answered question. Its answer is kept for a while if an attempt gave up waiting.
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
