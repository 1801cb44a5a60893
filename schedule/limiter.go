package schedule

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"go-crontab/internal/loop"
	"go-crontab/job"
	"go-crontab/sql"
	"go-crontab/sql/trip"

	"github.com/google/uuid"
)

// Limiter holds a node's view of the apps with limits, so a start needs no query for them. About
// once a second the limiter looks: it writes the starts of this session, and reads the starts of
// other sessions and the number of waiting runs. Between two looks it adds this node's own starts.
//
// On one node a limit of n is therefore exact. N nodes may exceed the limit between two looks. In
// the worst case each node starts the whole remainder within a second: N times n runs, and then
// none for the rest of the minute.
//
// A nil Limiter knows no limits.
type Limiter struct {
	LimiterConfig

	mu     sync.Mutex
	apps   map[string]*appUse    // with limits
	starts map[string]job.Starts // of this session, in the last minute, by app
}

// LimiterConfig configures a Limiter.
type LimiterConfig struct {
	DB      *sql.DB
	Session interface {
		ID() uuid.UUID
		Now() job.Micros
	}
	Lookout Lookout
	Metrics interface{ Limited(job.Limit) } // counts due times that end because of a limit
	Log     *slog.Logger
}

// NewLimiter returns a limiter that has not looked yet. The caller runs it.
func NewLimiter(cfg LimiterConfig) *Limiter { return &Limiter{LimiterConfig: cfg} }

// appUse holds the limits of one app, and how much of them was used at the last look.
type appUse struct {
	limits  job.AppLimits
	others  job.Starts // starts by other sessions, and manual runs
	waiting int64      // the count of the last look, plus this node's additions since
	added   int64      // this node's additions to waiting
}

const (
	limitPeriod = time.Second
	// limitRest is the least ratio of a pause to the duration of the look before it. The ratio
	// bounds the load, because counting may be slow.
	limitRest = 20
)

// Run looks until ctx is over.
func (l *Limiter) Run(ctx context.Context) error {
	return loop.Loop{Log: l.Log, Failed: "cannot read the limits of apps, using the last known ones"}.Run(ctx, l.step)
}

func (l *Limiter) step(ctx context.Context, _ bool) (pause time.Duration, err error) {
	began := time.Now()
	err = l.look(ctx, l.Session.Now())
	return max(limitPeriod, limitRest*time.Since(began)), err
}

// look publishes this node's starts and reads the starts of the others.
func (l *Limiter) look(ctx context.Context, now job.Micros) error {
	if l.Lookout.NoLimits() {
		l.forget()
		return nil
	}

	limits, err := trip.Limits(l.DB.Reader(ctx))
	if err != nil {
		return err
	}
	if len(limits) == 0 {
		l.forget()
		return nil
	}

	if err := trip.TellStarts(ctx, l.DB, l.Session.ID(), l.untold(limits, now)); err != nil {
		return err
	}

	others, err := trip.StartsBeside(l.DB.Reader(ctx), appsLimited(limits), job.FirstOfMinute(now), l.Session.ID())
	if err != nil {
		return err
	}

	before := l.added()
	waiting := map[string]int64{}
	if slices.ContainsFunc(slices.Collect(maps.Values(limits)), func(a job.AppLimits) bool { return a.Waiting != 0 }) {
		if waiting, err = trip.WaitingByApp(l.DB.Reader(ctx)); err != nil {
			return err
		}
	}

	l.learn(limits, others, waiting, before)
	return nil
}

// appsLimited lists, in order, the apps with a limit of runs a minute.
func appsLimited(limits map[string]job.AppLimits) (out []string) {
	for app, a := range limits {
		if a.RunsPerMinute != 0 {
			out = append(out, app)
		}
	}
	slices.Sort(out)
	return out
}

// forget clears everything when no app has limits.
func (l *Limiter) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.apps, l.starts = nil, nil
}

// untold returns the starts of this session in the last minute, by app. These are few numbers, so
// each look writes all of them again.
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

// added returns, by app, the number of waiting runs that this node has added since it first saw
// the app.
func (l *Limiter) added() map[string]int64 {
	l.mu.Lock()
	defer l.mu.Unlock()

	out := map[string]int64{}
	for app, use := range l.apps {
		out[app] = use.added
	}
	return out
}

// learn stores the result of a look. This node may have added runs since the reading of before.
// The counts in waiting may or may not include these runs, so learn adds them to the counts.
func (l *Limiter) learn(
	limits map[string]job.AppLimits, others map[string]job.Starts, waiting, before map[string]int64,
) {
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

// allowances holds the allowances that a transaction has read, by app. Nil means no limits.
type allowances struct {
	limiter *Limiter
	now     job.Micros
	known   map[string]*allowance
}

// allowances returns nil if no app has limits.
func (l *Limiter) allowances(now job.Micros) *allowances {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.apps) == 0 {
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

// of returns the allowance of an app now; nil if the app has no limits.
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

// mayFeed reports whether backfills of an app may get another due time.
func (l *Limiter) mayFeed(app string, now job.Micros) bool {
	a := l.of(app, now)
	return a == nil || a.limits.RunsPerMinute == 0 || a.started < a.limits.RunsPerMinute
}

// took counts the starts, waits and refusals of a committed transaction.
func (l *Limiter) took(verdicts []verdict, now job.Micros) {
	if l == nil {
		return
	}

	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.apps) == 0 {
		return
	}

	for i := range verdicts {
		v := &verdicts[i]
		if v.action == refuse && v.limit != "" {
			l.Metrics.Limited(v.limit)
		}
		if v.def == nil || v.def.Err != nil {
			continue
		}
		app := v.def.Spec.App
		use := l.apps[app]
		if use == nil {
			continue
		}
		if v.counts() && use.limits.RunsPerMinute != 0 {
			l.count(app, max(now, v.run.DueNow))
		}
		if v.queues() {
			use.waiting, use.added = use.waiting+1, use.added+1
		}
	}
}

// count counts one start. The caller holds the lock.
func (l *Limiter) count(app string, at job.Micros) {
	if l.starts == nil {
		l.starts = map[string]job.Starts{}
	}
	if l.starts[app] == nil {
		l.starts[app] = job.Starts{}
	}
	l.starts[app][job.SecondOf(at)]++
}

// allowance holds the limits of an app and their use, as a transaction sees them. Nil means no
// limits.
type allowance struct {
	app     string
	limits  job.AppLimits
	started int64 // in the last minute
	waiting int64
}

// judge applies the limits to the verdict of the policies. If the app is at a limit, a scheduled
// run ends skipped. A retry never ends skipped, because its due time has begun. A manual run was
// counted when it was requested. It is skipped only if it would have to wait. Backfills are paced
// when they get their runs: see mayFeed.
func (a *allowance) judge(r *trip.Run, v verdict) verdict {
	if a == nil || r.Attempt > 1 {
		return v
	}

	l := &a.limits
	switch {
	case v.action == start && r.Kind == trip.Schedule && l.RunsPerMinute != 0 && a.started >= l.RunsPerMinute:
		return a.over(job.LimitRuns, job.ReasonAppRunsLimit, numbered(l.RunsPerMinute, "run")+" a minute")
	case v.action == wait && r.Kind != trip.Backfill && r.Group >= 0 && l.Waiting != 0 && a.waiting >= l.Waiting:
		return a.over(job.LimitWaiting, job.ReasonAppWaitingLimit, numbered(l.Waiting, "waiting run"))
	}

	return v
}

// take counts a verdict, so that later verdicts of the transaction see it.
func (a *allowance) take(v *verdict) {
	if a == nil {
		return
	}
	if v.counts() {
		a.started++
	}
	if v.queues() {
		a.waiting++
	}
}

// counts reports whether a verdict counts against the limit of runs a minute. A run that people
// asked for was counted when it was requested.
func (v *verdict) counts() bool { return v.action == start && (!v.asked || v.run.Attempt > 1) }

// asked reports whether people asked for a run: a manual run or a rerun. A rerun has kind
// Backfill, but its request is not a backfill.
func (j *jobScene) asked(r *trip.Run) bool {
	return r.Kind == trip.Manual || r.Kind == trip.Backfill && j.backfills[r.Request] == ""
}

// queues reports whether a verdict adds a waiting run. A woken run that finds no slot adds none:
// it was waiting before.
func (v *verdict) queues() bool { return v.action == wait && v.run.Group >= 0 }

// over ends a run because its app is at a limit.
func (a *allowance) over(which job.Limit, code job.ReasonCode, most string) verdict {
	v := refusal(job.Skipped, code, "app %s is at its limit of %s", a.app, most)
	v.limit = which
	return *v
}

func numbered(n int64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
