package read

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"go-crontab/job"
	"go-crontab/sql"
)

// The functions in this file read definitions of all jobs, for the doctor. Each statement reads a
// bounded number of definitions, and so do all statements together.

// definitionsAtOnce is the number of definitions that one statement reads.
const definitionsAtOnce = 2000

// definitions calls read with ranges of job ids, including both ends, until read has enough. A
// range covers at most atOnce jobs. All ranges together cover at most `most` jobs. all reports
// whether no job was left out.
func (db *DB) definitions(
	ctx context.Context, most, atOnce int, read func(from, to int64) (enough bool, err error),
) (all bool, err error) {
	const query = `
		SELECT COALESCE(MAX(id), 0), COUNT(*)
		FROM (
			SELECT id
			FROM job FORCE INDEX (PRIMARY)
			WHERE id > ?
			ORDER BY id
			LIMIT ?) next`
	scan := func(rows *sql.Rows) (r [2]int64, err error) {
		err = rows.Scan(&r[0], &r[1])
		return r, err
	}

	for after := int64(0); ; {
		next, err := sql.Select(db.Reader(ctx), "list jobs", scan, query, after, max(1, min(most, atOnce)))
		if err != nil {
			return false, err
		}

		last, n := next[0][0], int(next[0][1])
		if n == 0 || most == 0 {
			return n == 0, nil
		}
		if enough, err := read(after+1, last); err != nil || enough {
			return enough, err
		}

		after, most = last, most-n
	}
}

// definedJobs is the common part of statements that read the definitions of a range of jobs.
const definedJobs = `
	FROM job j FORCE INDEX (PRIMARY)
	STRAIGHT_JOIN app a FORCE INDEX (PRIMARY) ON a.id = j.app_id
	STRAIGHT_JOIN job_version v FORCE INDEX (PRIMARY) ON v.job_id = j.id AND v.version = j.version
	WHERE j.id BETWEEN ? AND ? AND j.living = 1`

// PlacedJob is a job that runs only on certain nodes.
type PlacedJob struct {
	NamedJob
	Selector, Handler string
}

// PlacedJobs calls read with each job that has a selector or handler and future due times, until
// read has enough. It reads the first `most` definitions. all reports whether no job was left out.
func (db Checks) PlacedJobs(ctx context.Context, most int, read func(PlacedJob) (enough bool)) (all bool, err error) {
	const query = `
		SELECT j.id, a.name, j.name,
			COALESCE(JSON_UNQUOTE(JSON_EXTRACT(v.definition, '$.selector')), ''),
			COALESCE(JSON_UNQUOTE(JSON_EXTRACT(v.definition, '$.handler')), '')` + definedJobs + `
			AND j.paused = 0 AND j.error = '' AND j.next_due IS NOT NULL
			AND (v.definition LIKE '%"selector"%' OR v.definition LIKE '%"handler"%') AND JSON_VALID(v.definition)
		ORDER BY j.id`

	scan := func(rows *sql.Rows) (j PlacedJob, err error) {
		err = rows.Scan(&j.ID, &j.App, &j.Name, &j.Selector, &j.Handler)
		return j, err
	}

	return db.definitions(ctx, most, definitionsAtOnce, func(from, to int64) (bool, error) {
		found, err := sql.Select(db.Reader(ctx), "list jobs with selectors", scan, query, from, to)
		for _, j := range found {
			if (j.Selector != "" || j.Handler != "") && read(j) {
				return true, nil
			}
		}
		return false, err
	})
}

// ZonesInUse lists the time zones of living jobs, with one job for each zone. It reads the first
// `most` definitions. all reports whether there are no more.
func (db Checks) ZonesInUse(ctx context.Context, most int) (list []NamedJob, all bool, err error) {
	const query = `
		SELECT MIN(id), MIN(app), MIN(name), COUNT(*), zone
		FROM (
			SELECT j.id, a.name app, j.name,
				IF(JSON_VALID(v.definition), JSON_UNQUOTE(JSON_EXTRACT(v.definition, '$.timezone')), NULL) zone` +
		definedJobs + `) z
		WHERE zone IS NOT NULL AND zone <> ''
		GROUP BY zone`

	zones := map[string]*NamedJob{}
	all, err = db.definitions(ctx, most, definitionsAtOnce, func(from, to int64) (bool, error) {
		found, err := db.namedJobs(ctx, "list time zones", query, from, to)
		for i := range found {
			if z := zones[found[i].Text]; z != nil {
				z.N += found[i].N
			} else {
				zones[found[i].Text] = &found[i]
			}
		}
		return false, err
	})

	for _, zone := range slices.Sorted(maps.Keys(zones)) {
		list = append(list, *zones[zone])
	}

	return list, all, err
}

// LimitedJobs lists jobs whose commands have a limit that needs a cgroup. It reads the first most
// definitions. all reports whether there are no more definitions, or whether limit jobs were found.
func (db Checks) LimitedJobs(ctx context.Context, most, limit int) (list []NamedJob, all bool, err error) {
	const query = `
		SELECT j.id, a.name, j.name, 0, ''` + definedJobs + `
			AND v.definition LIKE '%"limits"%' AND JSON_VALID(v.definition)
			AND (JSON_EXTRACT(v.definition, '$.limits.memory') IS NOT NULL
				OR JSON_EXTRACT(v.definition, '$.limits.cpu') IS NOT NULL
				OR JSON_EXTRACT(v.definition, '$.limits.pids') IS NOT NULL)
		ORDER BY j.id
		LIMIT ?`
	all, err = db.definitions(ctx, most, definitionsAtOnce, func(from, to int64) (bool, error) {
		found, err := db.namedJobs(ctx, "list jobs with limits", query, from, to, limit-len(list))
		list = append(list, found...)
		return len(list) >= limit, err
	})

	return list, all, err
}

// JobSpell is the spell of a job, see Spell.
type JobSpell struct {
	NamedJob // N is the number of due times
	Unbegun  bool
}

const (
	// spellLeast is the length of the shortest spell that counts.
	spellLeast = 5
	// spellJobs is the number of jobs whose last outcome one statement reads. spellsAtOnce is the
	// number of jobs whose latest outcomes one statement reads.
	spellJobs    = 500
	spellsAtOnce = 20
)

// Spells calls read with each job that has a spell: its last spellLeast or more due times all
// failed, or none of them began. It stops when read has enough. It reads the first `most`
// definitions. all reports whether no job was left out. The runs of each job are read separately.
// In an index of all runs, the runs of a nightly job would be far apart.
func (db Checks) Spells(
	ctx context.Context, most int, read func(JobSpell) (enough bool, err error),
) (all bool, err error) {
	const last = `COALESCE((
			SELECT r.outcome
			FROM run r FORCE INDEX (attempt)
			WHERE r.job_id = j.id AND r.state = 'ended'
			ORDER BY r.job_id DESC, r.due DESC, r.request DESC, r.attempt DESC
			LIMIT ?, 1), 'succeeded')`
	const query = `
		SELECT j.id, a.name, j.name, 0, ''
		FROM job j FORCE INDEX (PRIMARY)
		STRAIGHT_JOIN app a FORCE INDEX (PRIMARY) ON a.id = j.app_id
		WHERE j.id BETWEEN ? AND ? AND j.living = 1 AND ` + last + ` <> 'succeeded' AND ` + last + ` <> 'succeeded'
		ORDER BY j.id`

	return db.definitions(ctx, most, spellJobs, func(from, to int64) (bool, error) {
		jobs, err := db.namedJobs(ctx, "list jobs that did not succeed last", query, from, to, 0, spellLeast-1)
		if err != nil {
			return false, err
		}

		for some := range slices.Chunk(jobs, spellsAtOnce) {
			found, err := db.spells(ctx, some)
			if err != nil {
				return false, err
			}
			for _, s := range found {
				if enough, err := read(s); err != nil || enough {
					return enough, err
				}
			}
		}

		return false, nil
	})
}

// spells reads the spells of jobs.
func (db *DB) spells(ctx context.Context, jobs []NamedJob) (out []JobSpell, err error) {
	var parts []string
	var args []any
	for i := range jobs {
		parts = append(parts, "("+latestEnds+")")
		args = append(args, jobs[i].ID, latestMost)
	}

	found, err := sql.Select(db.Reader(ctx), "read the latest outcomes", scanEnd, strings.Join(parts, " UNION ALL "),
		args...)
	if err != nil {
		return nil, err
	}

	ends := map[int64][]end{}
	for _, e := range found {
		ends[e.job] = append(ends[e.job], e)
	}

	for _, j := range jobs {
		s := spellOf(ends[j.ID])
		if s.N >= spellLeast {
			j.N = int64(s.N)
			out = append(out, JobSpell{j, s.Unbegun})
		}
	}

	return out, nil
}

// AnyBegun reports whether the job has an executing run, or whether one of its latest runs began in
// the week before its last due time. While a long run executes, the latest ends may all be skipped
// due times.
func (db Checks) AnyBegun(ctx context.Context, jobID int64) (bool, error) {
	executing, err := db.executingOf(ctx, []int64{jobID})
	if err != nil || executing[jobID] {
		return executing[jobID], err
	}

	const query = `
		SELECT COUNT(*)
		FROM (
			SELECT due, started
			FROM run FORCE INDEX (attempt)
			WHERE job_id = ? AND state = 'ended'
			ORDER BY due DESC, request DESC, attempt DESC
			LIMIT ?) latest
		WHERE started > 0 AND due > (
			SELECT MAX(due)
			FROM run FORCE INDEX (attempt)
			WHERE job_id = ?) - ?`
	found, err := sql.Select(db.Reader(ctx), "look for runs that have begun", scanID, query,
		jobID, latestMost, jobID, (7 * 24 * time.Hour).Microseconds())
	return err == nil && found[0] > 0, err
}

// stalledMost bounds how many waiting runs StalledWaits reads.
const stalledMost = 10_000

// StalledWaits lists waiting runs whose job has no current run any more: job.running ended before
// an instant. There should be no such runs, because the transaction that ends a run also wakes the
// next run.
func (db Checks) StalledWaits(ctx context.Context, before job.Micros) ([]StuckRun, error) {
	const query = `
		SELECT w.id, w.due, t.ended, w.job_id, a.name, j.name, ''
		FROM (
			SELECT id, due, due_now, job_id
			FROM run FORCE INDEX (live)
			WHERE owner = -1
			LIMIT ?) w
		STRAIGHT_JOIN job j FORCE INDEX (PRIMARY) ON j.id = w.job_id
		STRAIGHT_JOIN app a FORCE INDEX (PRIMARY) ON a.id = j.app_id
		STRAIGHT_JOIN run t FORCE INDEX (PRIMARY) ON t.id = j.running
		WHERE w.due_now >= 0 AND j.crowded = 0 AND t.state = 'ended' AND t.ended < ?
		ORDER BY w.due
		LIMIT ?`
	return sql.Select(db.Reader(ctx), "list stalled waits", scanStuck, query, stalledMost, int64(before), stuckMost)
}

// Forgotten describes what a database lost when a backup was restored: everything since Since.
type Forgotten struct {
	Since   job.Micros // the last sign of life in the database; zero: none
	Jobs    int64      // jobs with due times since then
	Once    []NamedJob // some of these jobs that have a single due time
	Running int64      // runs that were executing at the backup
}

// Forgotten estimates what a database lost when a backup was restored.
func (db *DB) Forgotten(ctx context.Context) (f Forgotten, err error) {
	m, err := db.ReadWatermark(ctx)
	if err != nil {
		return f, err
	}

	f.Since = m.At
	now, err := db.Now(ctx)
	if err != nil {
		return f, err
	}

	// The owner -2 means ended.
	const due = `(
		SELECT id
		FROM job FORCE INDEX (claim)
		WHERE next_due < ?
		UNION
		SELECT job_id
		FROM run FORCE INDEX (live)
		WHERE owner > -2 AND due < ?) due`
	const counts = `
		SELECT (SELECT COUNT(*) FROM ` + due + `),
			(SELECT COUNT(*) FROM run FORCE INDEX (live) WHERE owner > 0 AND state = 'executing')`
	scan := func(rows *sql.Rows) (n [2]int64, err error) {
		err = rows.Scan(&n[0], &n[1])
		return n, err
	}

	found, err := sql.Select(db.Reader(ctx), "count due times since a restore", scan, counts, int64(now), int64(now))
	if err != nil {
		return f, err
	}

	f.Jobs, f.Running = found[0][0], found[0][1]

	const once = `
		SELECT j.id, a.name, j.name, COALESCE(j.next_due, 0), ''
		FROM ` + due + `
		JOIN job j ON j.id = due.id AND j.living = 1
		JOIN app a ON a.id = j.app_id
		JOIN job_version v ON v.job_id = j.id AND v.version = j.version
		WHERE v.definition LIKE ?
		ORDER BY j.id
		LIMIT 10`
	f.Once, err = db.namedJobs(ctx, "list single due times since", once, int64(now), int64(now), `%"at":"%`)
	return f, err
}
