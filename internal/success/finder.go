// Package success finds the last success of a job. The job's next run gets it.
package success

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"go-crontab/job"
	"go-crontab/sql"
)

// Finder finds the last successes of jobs before the due times of runs. It is safe for concurrent use.
//
// Nearly always the previous run of a job succeeded. Then one statement answers for all runs of a
// start. If it did not, the finder walks back through the runs of the job. It remembers a long
// stretch without a success, so it walks through the stretch only once. Afterwards it reads only
// what was added to the stretch, and requested runs in the stretch.
type Finder struct {
	db   *sql.DB
	asks chan struct{} // a semaphore: statements at once

	mu    sync.Mutex
	known map[int64]stretch // by job: long stretches only
}

// stretch is a range of due times (low, upto] of a job. No run of the job's schedule in this range
// has succeeded, nor will one: all these runs have ended, and no more are made. Requested runs may
// still be added and succeed.
type stretch struct {
	low, upto job.Micros
	done      bool  // low is the last success, or zero if there is none; false: the walk got no further than low
	runs      int64 // in it
}

const (
	askedAtOnce = 100     // runs in one statement
	asksAtOnce  = 2       // few of the connections that move runs
	firstRuns   = 100     // runs that the first step of a walk reads
	moreRuns    = 5000    // runs that each further step reads
	requestMost = 1000000 // about this many of the latest runs of a stretch are searched for requested runs
	mostKnown   = 10000   // stretches that are remembered
)

// NewFinder returns a finder.
func NewFinder(db *sql.DB) *Finder {
	return &Finder{db: db, asks: make(chan struct{}, asksAtOnce), known: map[int64]stretch{}}
}

// LastSuccess finds, for each run, the latest earlier due time of its job with a succeeded run;
// zero: there is no record of such a run. It calls found, from any goroutine, for each run that it
// has an answer for. After an error, MySQL could not be asked in time, and the other runs have no
// answer.
func (f *Finder) LastSuccess(ctx context.Context, runs []job.Started, found func(i int, due job.Micros)) error {
	others, err := f.previous(ctx, runs, found)
	if err != nil {
		return err
	}

	var over sync.WaitGroup
	errs := make([]error, len(others))
	for n, i := range others {
		over.Go(func() {
			due, err := f.search(ctx, &runs[i])
			if errs[n] = err; err == nil {
				found(i, due)
			}
		})
	}
	over.Wait()
	return errors.Join(errs...)
}

// each runs a statement when its turn comes.
func (f *Finder) each(ctx context.Context, what string, scan func(*sql.Rows) error, query string, args ...any) error {
	select {
	case f.asks <- struct{}{}:
		defer func() { <-f.asks }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return sql.Each(f.db.Reader(ctx), what, scan, query, args...)
}

// previous answers for each run whose job's previous run succeeded or does not exist. It returns
// the indexes of the other runs.
func (f *Finder) previous(ctx context.Context, runs []job.Started, found func(int, job.Micros)) (others []int, err error) {
	for from := 0; from < len(runs); from += askedAtOnce {
		some := runs[from:min(len(runs), from+askedAtOnce)]
		dues, err := f.previousOf(ctx, some)
		if err != nil {
			return nil, err
		}
		for i, due := range dues {
			if due < 0 {
				others = append(others, from+i)
			} else {
				found(from+i, due)
			}
		}
	}
	return others, nil
}

// previousOf looks at the previous run of each run's job. It returns that run's due time if it
// succeeded, -1 if it did not, and zero if there is no such run. Each run has its own part in the
// statement. With due times from another table, servers would read all later runs of a job.
func (f *Finder) previousOf(ctx context.Context, runs []job.Started) ([]job.Micros, error) {
	const part = `(
		SELECT %d, IF(outcome = 'succeeded', due, -1)
		FROM run FORCE INDEX (attempt)
		WHERE job_id = %d AND due < %d
		ORDER BY job_id DESC, due DESC, request DESC, attempt DESC
		LIMIT 1)`

	parts := make([]string, len(runs))
	for i := range runs {
		parts[i] = fmt.Sprintf(part, i, runs[i].JobID, int64(runs[i].Due))
	}

	dues := make([]job.Micros, len(runs))
	err := f.each(ctx, "read the previous runs", func(rows *sql.Rows) error {
		var i int
		var due job.Micros
		if err := rows.Scan(&i, &due); err != nil {
			return err
		}
		dues[i] = due
		return nil
	}, strings.Join(parts, " UNION ALL "))
	return dues, err
}

// search finds the last success before a run by a walk.
func (f *Finder) search(ctx context.Context, s *job.Started) (job.Micros, error) {
	f.mu.Lock()
	was := f.known[s.JobID]
	f.mu.Unlock()
	if s.Due <= was.low {
		was = stretch{} // it says nothing of earlier due times
	}

	w := walk{Finder: f, jobID: s.JobID, open: s.Due}
	due, err := w.down(ctx, s.Due, was.upto)
	if was.upto == 0 {
		f.remember(s, was, &w, due, err == nil)
		return due, err
	}
	if err != nil || due != 0 {
		return due, err
	}

	// The runs below the stretch are not read yet: go on there, and look for requested runs in the
	// stretch.
	due = was.low
	if !was.done {
		w.at = was.low
		due, err = w.down(ctx, was.low+1, 0)
	}
	f.remember(s, was, &w, due, err == nil)
	if err != nil {
		return 0, err
	}
	requested, err := f.requested(ctx, s, was)
	return max(due, requested), err
}

// remember keeps the findings of a walk about a job. It does so only for runs of the schedule,
// because these come in the order of their due times: before one starts, all earlier ones have
// been made.
func (f *Finder) remember(s *job.Started, was stretch, w *walk, due job.Micros, done bool) {
	now := stretch{low: due, upto: max(was.upto, min(w.newest, w.open-1)), done: done, runs: was.runs + w.runs}
	if !done {
		now.low = w.at
	}
	if s.Kind != job.FromSchedule || now.runs <= firstRuns || now.upto <= now.low {
		return
	}

	f.mu.Lock()
	defer f.mu.Unlock()
	if _, is := f.known[s.JobID]; !is && len(f.known) >= mostKnown {
		for id := range f.known { // any stretch: a later walk finds it again when it is needed
			delete(f.known, id)
			break
		}
	}
	f.known[s.JobID] = now
}

// requested finds the last success of a requested run in a stretch, before the due time of a run.
// It reads the entries of an index. Only entries of requested runs lead to a row.
func (f *Finder) requested(ctx context.Context, s *job.Started, in stretch) (due job.Micros, err error) {
	const query = `
		SELECT COALESCE(MAX(due), 0)
		FROM run FORCE INDEX (attempt)
		WHERE job_id = ? AND due > ? AND due <= ? AND request <> 0 AND outcome = 'succeeded'`

	from := in.low
	if in.runs > requestMost { // as if its runs were spread evenly
		from = in.upto - job.Micros(float64(in.upto-in.low)*requestMost/float64(in.runs))
	}
	scan := func(rows *sql.Rows) error { return rows.Scan(&due) }
	err = f.each(ctx, "look for requested runs", scan, query,
		s.JobID, int64(from), int64(min(in.upto, s.Due-1)))
	return due, err
}

// walk goes back through the runs of a job.
type walk struct {
	*Finder
	jobID int64

	at     job.Micros // all runs that are due later have been read
	newest job.Micros // the latest due time of an ended run of the schedule
	open   job.Micros // the earliest due time of a run of the schedule that has not ended
	runs   int64      // read
}

// down reads the runs that are due between two instants, the latest first, until it finds a
// success. It returns the due time of that run; zero: no run has succeeded.
func (w *walk) down(ctx context.Context, before, after job.Micros) (job.Micros, error) {
	const query = `
		SELECT COUNT(*), COALESCE(MIN(due), 0),
			COALESCE(MAX(IF(outcome = 'succeeded', due, 0)), 0),
			COALESCE(MAX(IF(request = 0 AND state = 'ended', due, 0)), 0),
			COALESCE(MIN(IF(request = 0 AND state <> 'ended', due, NULL)), ?)
		FROM (
			SELECT due, request, state, outcome
			FROM run FORCE INDEX (attempt)
			WHERE job_id = ? AND due < ? AND due > ?
			ORDER BY job_id DESC, due DESC, request DESC, attempt DESC
			LIMIT ?) latest`

	for limit := int64(firstRuns); ; limit = moreRuns {
		var n int64
		var earliest, succeeded, newest, open job.Micros
		scan := func(rows *sql.Rows) error { return rows.Scan(&n, &earliest, &succeeded, &newest, &open) }
		err := w.each(ctx, "look for the last success", scan, query,
			int64(w.open), w.jobID, int64(before), int64(after), limit)
		if err != nil {
			return 0, err
		}

		w.runs += n
		w.newest, w.open = max(w.newest, newest), min(w.open, open)
		if succeeded != 0 || n < limit {
			return succeeded, nil
		}
		w.at = earliest
		if before == earliest+1 {
			before = earliest // thousands of runs have this due time
		} else {
			before = earliest + 1
		}
	}
}
