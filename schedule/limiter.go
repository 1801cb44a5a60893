package schedule

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"go-crontab/job"
	"go-crontab/sql"
)

// Limiter is what a node knows of apps with limits, so that a start asks nobody. About once a second it writes how many
// starts this session has had, and reads how many the others had and how much waits. What this node did since then it
// adds by itself.
//
// So a limit of n is exact on one node. N nodes may go over it by what the others start between two looks: in the worst
// case each starts all that was left, which makes N times n within a second, and then nothing for the rest of the minute.
//
// While no app has limits it sends no statement: the lookout says so.
type Limiter struct {
	DB      *sql.DB
	Session Session
	Lookout *Lookout        // nil: the limits are read with each look
	Refused func(job.Limit) // called for each due time that ends because of a limit; nil: nobody counts
	Log     *slog.Logger

	mu     sync.Mutex
	apps   map[string]*appUse    // with limits
	starts map[string]job.Starts // of this session, for the last minute, by app
}

// appUse is what one app with limits did, as of the last look.
type appUse struct {
	limits  job.AppLimits
	others  job.Starts // by other sessions, and asked for by people
	waiting int64      // by the count of the last look, and those that this node added since
	added   int64      // of them
}

const (
	limitPeriod = time.Second
	// limitRest is how many times as long as a look took the pause behind it is at least, where counting is slow.
	limitRest = 20
)

// Run looks until ctx ends.
func (l *Limiter) Run(ctx context.Context) error {
	for {
		began := time.Now()
		if err := l.look(ctx, l.Session.Now()); err != nil && ctx.Err() == nil {
			l.Log.Warn("cannot read the limits of apps, going by the last ones", "error", err)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(max(limitPeriod, limitRest*time.Since(began))):
		}
	}
}

// look tells the others of this node's starts, and learns of theirs.
func (l *Limiter) look(ctx context.Context, now job.Micros) error {
	if l.Lookout.NoLimits() {
		l.forget()
		return nil
	}
	limits, err := l.DB.Limits(ctx)
	if err != nil {
		return err
	}
	if len(limits) == 0 {
		l.forget()
		return nil
	}

	if err := l.DB.TellStarts(ctx, l.Session.ID(), l.untold(limits, now)); err != nil {
		return err
	}
	others, err := l.DB.StartsBeside(ctx, limitedBy(limits, job.LimitRuns), job.FirstOfMinute(now), l.Session.ID())
	if err != nil {
		return err
	}

	before := l.added()
	waiting := map[string]int64{}
	for _, app := range limitedBy(limits, job.LimitWaiting) {
		if waiting[app], err = l.DB.CountAppWaiting(ctx, app, limits[app].Waiting); err != nil {
			return err
		}
	}

	l.learn(limits, others, waiting, before)
	return nil
}

// limitedBy lists, in order, the apps that have one of the limits.
func limitedBy(limits map[string]job.AppLimits, which job.Limit) []string {
	var out []string
	for app, l := range limits {
		if which == job.LimitRuns && l.RunsPerMinute != 0 || which == job.LimitWaiting && l.Waiting != 0 {
			out = append(out, app)
		}
	}
	slices.Sort(out)
	return out
}

// forget is for when no app has limits.
func (l *Limiter) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.apps, l.starts = nil, nil
}

// untold returns the starts of this session that others may not know of. Numbers of a second grow only while that lasts
// and a little longer, so the seconds of the last looks are enough; all of the minute are, and there are few.
func (l *Limiter) untold(limits map[string]job.AppLimits, now job.Micros) map[string]job.Starts {
	l.mu.Lock()
	defer l.mu.Unlock()

	out := map[string]job.Starts{}
	for app, starts := range l.starts {
		if starts.Forget(now); limits[app].RunsPerMinute == 0 || len(starts) == 0 {
			delete(l.starts, app)
			continue
		}
		out[app] = maps.Clone(starts)
	}
	return out
}

// added is how many waits this node has added, by app, since it knows of the app.
func (l *Limiter) added() map[string]int64 {
	l.mu.Lock()
	defer l.mu.Unlock()

	out := map[string]int64{}
	for app, use := range l.apps {
		out[app] = use.added
	}
	return out
}

// learn takes what a look has found. What this node added to the waiting since before the count may be in it or not, and
// is counted beside it.
func (l *Limiter) learn(limits map[string]job.AppLimits, others map[string]job.Starts, waiting, before map[string]int64) {
	l.mu.Lock()
	defer l.mu.Unlock()

	apps := map[string]*appUse{}
	for app, is := range limits {
		use := &appUse{limits: is, others: others[app], waiting: waiting[app]}
		if was := l.apps[app]; was != nil {
			use.added = was.added
			use.waiting += was.added - before[app]
		}
		apps[app] = use
	}
	l.apps = apps
}

// any reports whether some app has limits.
func (l *Limiter) any() bool {
	if l == nil {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.apps) > 0
}

// allowances are what the limits leave to one transaction, by app. Nil is no limits.
type allowances struct {
	limiter *Limiter
	now     job.Micros
	known   map[string]*allowance
}

// allowances returns nil if no app has limits.
func (l *Limiter) allowances(now job.Micros) *allowances {
	if !l.any() {
		return nil
	}
	return &allowances{l, now, map[string]*allowance{}}
}

func (a *allowances) of(app string) *allowance {
	if a == nil {
		return nil
	}
	known, is := a.known[app]
	if !is {
		known = a.limiter.of(app, a.now)
		a.known[app] = known
	}
	return known
}

// of returns what the limits of an app leave now; nil if it has none.
func (l *Limiter) of(app string, now job.Micros) *allowance {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()

	use := l.apps[app]
	if use == nil {
		return nil
	}
	started := use.others.LastMinute(now) + l.starts[app].LastMinute(now)
	return &allowance{app: app, limits: use.limits, started: started, waiting: use.waiting}
}

// took counts what a committed transaction began, what it left waiting, and what it refused.
func (l *Limiter) took(decided []decision) {
	if !l.any() {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()

	for i := range decided {
		d := &decided[i]
		if d.verdict == refuse && d.limit != "" && l.Refused != nil {
			l.Refused(d.limit)
		}
		use := l.apps[d.run.App]
		if use == nil {
			continue
		}
		if counts(d) && use.limits.RunsPerMinute != 0 {
			l.count(d.run.App, max(d.attempt.At, d.task.DueNow))
		}
		if d.verdict == wait && queued(&d.wait) {
			use.waiting, use.added = use.waiting+1, use.added+1
		}
	}
}

// count counts one start. The lock is held.
func (l *Limiter) count(app string, at job.Micros) {
	if l.starts == nil {
		l.starts = map[string]job.Starts{}
	}
	if l.starts[app] == nil {
		l.starts[app] = job.Starts{}
	}
	l.starts[app][job.SecondOf(at)]++
}

// mayFeed reports whether backfills of an app may get another due time.
func (l *Limiter) mayFeed(app string, now job.Micros) bool {
	a := l.of(app, now)
	return a == nil || a.limits.RunsPerMinute == 0 || a.started < a.limits.RunsPerMinute
}
