package edit

import (
	"context"
	"errors"
	"maps"
	"slices"

	"go-crontab/job"
	"go-crontab/sql"
	"go-crontab/sql/trip"
)

// PutLimits replaces the limits of an app.
func (e *Editor) PutLimits(ctx context.Context, app string, l job.AppLimits) error {
	if err := l.Validate(); err != nil {
		return err
	}
	return e.changeLimits(ctx, app, l)
}

// DeleteLimits removes all limits of an app.
func (e *Editor) DeleteLimits(ctx context.Context, app string) error {
	return e.changeLimits(ctx, app, job.AppLimits{})
}

// changeLimits replaces the limits of an app. With zero limits the app has none. If a limit is
// lowered, the jobs and runs beyond it stay.
func (e *Editor) changeLimits(ctx context.Context, app string, l job.AppLimits) error {
	return e.record(ctx, func(tx *sql.Tx, now job.Micros) (*job.Entry, error) {
		was, found, err := trip.HoldLimits(tx, app)
		if err != nil {
			return nil, err
		}
		if err := job.CheckPrecondition(ctx, found, 0); err != nil {
			return nil, err
		}
		if was == l {
			return nil, nil
		}

		line := &job.Entry{Action: job.ActionUpdate, Kind: job.KindLimits, App: app, Became: l.Encode()}
		if found {
			line.Was = was.Encode()
		}
		if l == (job.AppLimits{}) {
			line.Action, line.Became = job.ActionDelete, ""
			return line, dropLimits(tx, app)
		}
		return line, putLimits(tx, app, l, job.ActorOf(ctx).Who, now)
	})
}

// limitJobs refuses changes that would exceed the job limit of an app. Changes of one app wait for
// each other. Changes of different apps do not.
func limitJobs(tx *sql.Tx, verdicts []verdict) error {
	adds := map[string]int64{}
	for i := range verdicts {
		if v := &verdicts[i]; v.Result == job.BulkChanged {
			if app := v.joins(); app != "" {
				adds[app]++
			}
			if app := v.leaves(); app != "" {
				adds[app]--
			}
		}
	}

	for _, app := range slices.Sorted(maps.Keys(adds)) {
		if adds[app] <= 0 {
			continue
		}
		err := limitApp(tx, app, adds[app])
		if err != nil && !errors.As(err, new(*job.OverLimit)) {
			return err
		}
		for i := range verdicts {
			if v := &verdicts[i]; err != nil && v.Result == job.BulkChanged && v.joins() == app {
				*v = v.refuse(err)
			}
		}
	}
	return nil
}

// joins returns the app to which the change adds a job; empty: none.
func (v *verdict) joins() string {
	if !v.names() || v.seen != nil && v.seen.App == v.def.App {
		return ""
	}
	return v.def.App
}

// leaves returns the app from which the change removes a job; empty: none.
func (v *verdict) leaves() string {
	if v.Action == job.ActionDelete || v.seen != nil && v.joins() != "" {
		return v.seen.App
	}
	return ""
}

// limitApp returns *job.OverLimit if the additional jobs would exceed the limit of an app.
func limitApp(tx *sql.Tx, app string, adds int64) error {
	limits, _, err := trip.HoldLimits(tx, app)
	if err != nil || limits.Jobs == 0 {
		return err
	}
	has, err := trip.CountJobs(tx, app)
	if err != nil {
		return err
	}
	return limits.CheckJobs(app, has, adds)
}

// limitRuns locks the limits of the jobs' apps, and refuses runs beyond a limit.
func limitRuns(tx *sql.Tx, done []Done, seen map[int64]*trip.Seen, now job.Micros) error {
	limited, err := holdLimits(tx, done, seen)
	if err != nil {
		return err
	}
	return admitRuns(tx, limited, done, seen, now)
}

// holdLimits locks the limits of the jobs' apps, in order, and returns those that exist.
func holdLimits(tx *sql.Tx, done []Done, seen map[int64]*trip.Seen) (map[string]job.AppLimits, error) {
	apps := map[string]bool{}
	for i := range done {
		if done[i].Result == job.BulkChanged {
			apps[seen[done[i].ID].App] = true
		}
	}

	limited := map[string]job.AppLimits{}
	for _, app := range slices.Sorted(maps.Keys(apps)) {
		limits, found, err := trip.HoldLimits(tx, app)
		if err != nil {
			return nil, err
		}
		if found {
			limited[app] = limits
		}
	}
	return limited, nil
}

// admitRuns refuses runs beyond a limit. An admitted run counts as started at once, so concurrent
// requests cannot all pass. Its start later does not count again. The caller has locked the
// limits.
func admitRuns(
	tx *sql.Tx, limited map[string]job.AppLimits, done []Done, seen map[int64]*trip.Seen, now job.Micros,
) error {
	for _, app := range slices.Sorted(maps.Keys(limited)) {
		limits := limited[app]
		starts, waiting, err := useOf(tx, app, limits, now)
		if err != nil {
			return err
		}

		admitted := int64(0)
		for i := range done {
			d := &done[i]
			if d.Result != job.BulkChanged || seen[d.ID].App != app {
				continue
			}
			if err := limits.CheckRun(app, starts, waiting, now); err != nil {
				d.Result, d.Err = job.BulkRefused, err
				continue
			}
			starts[job.SecondOf(now)]++
			admitted++
		}

		if admitted == 0 || limits.RunsPerMinute == 0 {
			continue
		}
		if err := trip.AddAskedRuns(tx, app, job.SecondOf(now), admitted); err != nil {
			return err
		}
	}
	return nil
}

// admitBackfill refuses a backfill with *job.OverLimit while its app is at a limit. Later, the
// claimer paces the runs of the backfill.
func admitBackfill(tx *sql.Tx, app string, now job.Micros) error {
	limits, _, err := trip.HoldLimits(tx, app)
	if err != nil {
		return err
	}
	starts, waiting, err := useOf(tx, app, limits, now)
	if err != nil {
		return err
	}
	return limits.CheckRun(app, starts, waiting, now)
}

// useOf returns the starts and the waiting runs that count against the run limits of an app. The
// caller has locked the limits.
func useOf(tx *sql.Tx, app string, limits job.AppLimits, now job.Micros) (starts job.Starts, waiting int64, err error) {
	starts = job.Starts{}
	if limits.RunsPerMinute != 0 {
		if starts, err = trip.AppStarts(tx, app, job.FirstOfMinute(now)); err != nil {
			return nil, 0, err
		}
	}
	if limits.Waiting != 0 {
		waiting, err = trip.CountWaiting(tx, app, limits.Waiting)
	}
	return starts, waiting, err
}

// putLimits replaces the row of an app's limits.
func putLimits(tx *sql.Tx, app string, l job.AppLimits, who string, now job.Micros) error {
	null := func(n int64) any {
		if n == 0 {
			return nil
		}
		return n
	}
	_, err := tx.Exec("put limits", `
		INSERT INTO app_limit (app, jobs, runs_per_minute, waiting, output, who, updated)
		VALUES (?, ?, ?, ?, ?, ?, ?)
		ON DUPLICATE KEY UPDATE
			jobs = VALUES(jobs), runs_per_minute = VALUES(runs_per_minute), waiting = VALUES(waiting),
			output = VALUES(output), who = VALUES(who), updated = VALUES(updated)`,
		app, null(l.Jobs), null(l.RunsPerMinute), null(l.Waiting), null(int64(l.Output)), sql.Cut(who, 128), int64(now))
	return err
}

// dropLimits removes the limits of an app.
func dropLimits(tx *sql.Tx, app string) error {
	_, err := tx.Exec("drop limits", "DELETE FROM app_limit WHERE app = ?", app)
	return err
}
