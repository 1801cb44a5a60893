package read

import (
	"context"
	"fmt"
	"slices"

	"go-crontab/job"
	"go-crontab/sql"
	"go-crontab/sql/trip"
)

// RunFilter selects runs. Zero fields do not restrict.
type RunFilter struct {
	JobID    int64
	App      string
	Apps     []string // only runs in these apps; nil: all
	Node     string
	Outcomes []job.Outcome // any of these; nil: all. job.Succeeded is not combined with others
	Last     bool          // only runs that are the last attempt of their due time
	Kind     trip.Kind
	From     job.Micros // due at or after
	To       job.Micros // due before
	After    *RunPlace  // only runs after this position
	Limit    int
}

// RunPlace is a position in a list of runs. Each list uses a subset of the fields.
type RunPlace struct {
	ID      int64
	Due     job.Micros
	DueNow  job.Micros
	Request int64
	Attempt int
	Hash    int
}

// RunPage is a page of a list of ended runs.
type RunPage struct {
	Rows []Run
	Next *RunPlace // position of the next page; nil: no more pages
}

// If a filter allows at least manyRunApps apps, a list reads the runs of all apps and filters them.
const manyRunApps = 5

// RunPage reads a page of a list of ended runs, latest first. A page has at most Limit runs. It may
// have fewer, even none, because only a bounded number of entries is read for it.
//
// A list of a job, of apps or with an outcome is ordered by due time. The list of all runs is
// ordered by the time at which each run was to begin. There a retry has its own time, and From and
// To also refer to that time.
func (db *DB) RunPage(ctx context.Context, f RunFilter) (RunPage, error) {
	r := db.Reader(ctx)
	apps, none, err := appsOf(r, f.App, f.Apps)
	if err != nil || none {
		return RunPage{}, err
	}

	l := runList(r, f, apps)
	found, next, err := l.page(f.Limit)
	if err != nil {
		return RunPage{}, err
	}

	var p RunPage
	if next != nil {
		p.Next = &next.RunPlace
	}

	ids := make([]int64, len(found))
	for i := range found {
		ids[i] = found[i].ID
	}

	rows, err := runsByID(r, ids)
	for _, id := range ids {
		if run, ok := rows[id]; ok { // otherwise retention has just removed it
			p.Rows = append(p.Rows, *run)
		}
	}

	return p, err
}

// Runs reads a list up to its limit, even if the list has many pages.
func (db *DB) Runs(ctx context.Context, f RunFilter) ([]Run, error) {
	var out []Run
	for most := f.Limit; ; {
		p, err := db.RunPage(ctx, f)
		if err != nil {
			return nil, err
		}
		out = append(out, p.Rows...)
		if p.Next == nil || len(out) >= most {
			return out, nil
		}
		f.After, f.Limit = p.Next, most-len(out)
	}
}

// runEntry is an index entry that leads to a run.
type runEntry struct {
	RunPlace
	fits bool
}

func scanRunEntry(rows *sql.Rows) (e runEntry, err error) {
	err = rows.Scan(&e.ID, &e.Due, &e.DueNow, &e.Request, &e.Attempt, &e.Hash, &e.fits)
	return e, err
}

// runSource is an index from which runs are listed, in descending order.
type runSource struct {
	from  string // the index, as a FROM clause
	time  string // the column that From and To restrict
	order string
	after func(p *RunPlace) string // the condition for runs after a position
}

var (
	// allRuns lists ended runs by the time at which they were to begin.
	allRuns = runSource{
		from:  "run r FORCE INDEX (live)",
		time:  "r.due_now",
		order: "r.due_now DESC, r.hash DESC, r.id DESC",
		after: func(p *RunPlace) string {
			return fmt.Sprintf(
				"r.due_now <= %[1]d AND (r.due_now < %[1]d OR r.hash < %[2]d OR r.hash = %[2]d AND r.id < %[3]d)",
				p.DueNow, p.Hash, p.ID)
		},
	}

	// runsOfApp lists the runs of an app, including live ones.
	runsOfApp = runSource{
		from:  "run r FORCE INDEX (by_app)",
		time:  "r.due",
		order: "r.due DESC, r.id DESC",
		after: func(p *RunPlace) string {
			return fmt.Sprintf("r.due <= %[1]d AND (r.due < %[1]d OR r.id < %[2]d)", p.Due, p.ID)
		},
	}

	// runsOfJob lists the runs of a job, including live ones.
	runsOfJob = runSource{
		from:  "run r FORCE INDEX (attempt)",
		time:  "r.due",
		order: "r.due DESC, r.request DESC, r.attempt DESC",
		after: func(p *RunPlace) string {
			return fmt.Sprintf(
				"r.due <= %[1]d AND (r.due < %[1]d OR r.request < %[2]d OR r.request = %[2]d AND r.attempt < %[3]d)",
				p.Due, p.Request, p.Attempt)
		},
	}
)

// notableRuns lists the runs with an unsuccessful outcome. They have their own table: in the table
// of all runs, few of them would be among many succeeded runs.
func notableRuns(index string) runSource {
	return runSource{
		from: `notable n FORCE INDEX (` + index + `)
			STRAIGHT_JOIN run r FORCE INDEX (PRIMARY) ON r.id = n.run_id`,
		time:  "n.due",
		order: "n.due DESC, n.run_id DESC",
		after: func(p *RunPlace) string {
			return fmt.Sprintf("n.due <= %[1]d AND (n.due < %[1]d OR n.run_id < %[2]d)", p.Due, p.ID)
		},
	}
}

// runList picks the index for a list. Conditions that the index does not ensure are checked entry
// by entry.
func runList(r sql.Reader, f RunFilter, apps []int32) *merge[runEntry] {
	l := &merge[runEntry]{
		reader: r,
		what:   "list runs",
		scan:   scanRunEntry,
		fits: func(e *runEntry) bool {
			return e.fits
		},
	}
	l.less = func(a, b *runEntry) bool { return a.Due > b.Due || a.Due == b.Due && a.ID > b.ID }

	left := []Condition{{"r.state = 'ended'", nil}}
	if f.Node != "" {
		left = append(left, Condition{"(SELECT l.node FROM life l WHERE l.id = r.session) = ?", []any{f.Node}})
	}
	if f.Kind != "" {
		left = append(left, Condition{"r.kind = ?", []any{string(f.Kind)}})
	}

	if f.Last {
		left = append(left, Condition{`r.final = 1 AND NOT EXISTS (
			SELECT 1
			FROM run l FORCE INDEX (attempt)
			WHERE l.job_id = r.job_id AND l.due = r.due AND l.request > r.request)`, nil})
	}

	succeeded := slices.Contains(f.Outcomes, job.Succeeded)
	byOutcome := f.Outcomes != nil && !succeeded
	if succeeded {
		left = append(left, Condition{"r.outcome = 'succeeded'", nil})
	}

	byApp := f.JobID == 0 && apps != nil && len(apps) < manyRunApps
	if apps != nil && !byApp {
		left = append(left, Condition{"r.app_id IN " + list(apps), nil})
	}

	add := func(s runSource, where string) { l.all = append(l.all, s.indexRange(f, where, left)) }
	addEach := func(s runSource, where string) {
		for _, o := range f.Outcomes {
			add(s, fmt.Sprintf("%s AND n.outcome = '%s'", where, o))
		}
	}

	switch {
	case f.JobID != 0 && byOutcome:
		addEach(notableRuns("by_job"), fmt.Sprintf("n.job_id = %d", f.JobID))
	case f.JobID != 0:
		add(runsOfJob, fmt.Sprintf("r.job_id = %d", f.JobID))
	case byApp && byOutcome:
		for _, app := range apps {
			addEach(notableRuns("by_app"), fmt.Sprintf("n.app_id = %d", app))
		}
	case byApp:
		for _, app := range apps {
			add(runsOfApp, fmt.Sprintf("r.app_id = %d", app))
		}
	case byOutcome:
		addEach(notableRuns("PRIMARY"), "TRUE")
	default:
		add(allRuns, fmt.Sprintf("r.owner = %d", trip.EndedOwner))
	}

	return l
}

// indexRange returns one range of the index.
func (s runSource) indexRange(f RunFilter, where string, left []Condition) *indexRange[runEntry] {
	if f.From != 0 {
		where += fmt.Sprintf(" AND %s >= %d", s.time, f.From)
	}
	if f.To != 0 {
		where += fmt.Sprintf(" AND %s < %d", s.time, f.To)
	}

	fits, args := all(left)

	g := &indexRange[runEntry]{query: func(after *runEntry, limit int) (string, []any) {
		position := "TRUE"
		if after != nil {
			position = s.after(&after.RunPlace)
		}

		return `
			SELECT r.id, r.due, r.due_now, r.request, r.attempt, r.hash, COALESCE(` + fits + `, FALSE)
			FROM ` + s.from + `
			WHERE ` + where + ` AND ` + position + `
			ORDER BY ` + s.order + `
			LIMIT ?`, append(slices.Clone(args), limit)
	}}

	if f.After != nil {
		g.last = &runEntry{RunPlace: *f.After}
	}
	return g
}
