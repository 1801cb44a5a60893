package sql

import (
	"context"
	stdsql "database/sql"
	"slices"
	"strings"

	"go-crontab/job"
)

// RunFilter says which runs to list. Zero fields do not restrict.
type RunFilter struct {
	JobID   int64
	App     string
	Apps    []string // only in these, nil: in all
	Node    string
	Outcome job.Outcome
	Trigger *Trigger
	From    job.Micros // due at or after
	To      job.Micros // due before
	After   *RunPlace  // only what the list has after this place
	Limit   int
}

// RunPage is a part of a list of runs that have ended.
type RunPage struct {
	Rows []RunRow
	Next *RunPlace // where it goes on; nil: it ends
}

// Runs reads a list up to its limit, however long that takes.
func (db *DB) Runs(ctx context.Context, f RunFilter) ([]RunRow, error) {
	var out []RunRow
	most := f.Limit
	for {
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

// RunPage reads a part of a list of ended runs, the latest due first: at most as many as the limit, and less, even none,
// when so many entries were looked at without finding more that the answer would take too long.
func (db *DB) RunPage(ctx context.Context, f RunFilter) (RunPage, error) {
	if f.App != "" && f.Apps != nil && !slices.Contains(f.Apps, f.App) || f.Apps != nil && len(f.Apps) == 0 {
		return RunPage{}, nil
	}
	l := runList{db: db, RunFilter: f}
	if l.App != "" {
		l.Apps = []string{l.App}
	}
	l.choose()
	if f.After != nil {
		for _, g := range l.legs {
			g.last = &runEntry{RunPlace: *f.After}
		}
	}
	if len(l.left) > 0 {
		return l.looked(ctx)
	}
	return l.direct(ctx)
}

// runEntry is an entry of an index that leads to a run.
type runEntry struct {
	RunPlace
	fits bool
	row  RunRow // unless only the place is read
}

// runList is a list that is being read.
type runList struct {
	db *DB
	RunFilter
	legs  []*leg[runEntry]
	left  []condition // that do not hold of all of the legs
	ofJob bool        // the order is that of the runs of one job
}

// choose picks the index by which the list is read.
//
//	job                        attempt (job_id, due, origin, attempt), whatever else is wanted left to be looked at
//	job, and not just success  notable (job_id, outcome, trig, due, id)
//	app                        by_app (app, outcome, trig, due, id)
//	node                       by_node (node, outcome, trig, due, id)
//	neither                    by_outcome (outcome, trig, due, id)
//
// Each outcome and trigger is a range of its own in the last four, so that they go together with any of the others, and
// with a time.
func (l *runList) choose() {
	switch {
	case l.JobID != 0 && l.isNotable():
		l.eachKind("notable n FORCE INDEX (PRIMARY)", "n", "n.job_id = ?", l.JobID)
		l.leave("h.node = ?", l.Node)
		l.leaveApps()
	case l.JobID != 0:
		l.ofJob = true
		l.add("history h FORCE INDEX (attempt)", "h", "h.job_id = ?", l.JobID)
		l.leave("h.node = ?", l.Node)
		l.leaveApps()
		if l.Outcome != 0 {
			l.left = append(l.left, condition{"h.outcome = ?", []any{l.Outcome}})
		}
		if l.Trigger != nil {
			l.left = append(l.left, condition{"h.trig = ?", []any{*l.Trigger}})
		}
	case l.Apps != nil && len(l.Apps) <= manyAppsOfRuns:
		for _, app := range l.Apps {
			// Two apps may share a number: few rows are of another app, if any.
			l.eachKind("history h FORCE INDEX (by_app)", "h", "h.app = ?", appNumber(app))
		}
		if l.Node != "" { // what is left is looked for in MySQL, so that comparing the app's name is too
			l.leave("h.node = ?", l.Node)
			l.leaveApps()
		}
	case l.Node != "":
		l.eachKind("history h FORCE INDEX (by_node)", "h", "h.node = ?", l.Node)
		l.leaveApps()
	default:
		l.eachKind("history h FORCE INDEX (by_outcome)", "h", "TRUE")
		l.leaveApps()
	}
}

// manyAppsOfRuns is from how many apps on a list of runs does not read each of them by itself: each has as many legs as
// there are outcomes and triggers.
const manyAppsOfRuns = 4

// isNotable tells whether the runs that are wanted stand in table notable.
func (l *runList) isNotable() bool {
	return l.Outcome != 0 && l.Outcome != job.Succeeded || l.Trigger != nil && *l.Trigger != BySchedule
}

func (l *runList) leave(cond, value string) {
	if value != "" {
		l.left = append(l.left, condition{cond, []any{value}})
	}
}

func (l *runList) leaveApps() {
	if l.Apps != nil {
		list, args := in(nil, l.Apps)
		l.left = append(l.left, condition{"(SELECT " + appOfRun + " FROM job j WHERE j.id = h.job_id) IN " + list, args})
	}
}

// eachKind adds a leg for each outcome and trigger that is wanted. t is what the index's columns belong to.
func (l *runList) eachKind(from, t, where string, args ...any) {
	for o := job.Succeeded; o <= job.Superseded; o++ {
		for _, by := range []Trigger{BySchedule, ByRequest, ByBackfill} {
			if l.Outcome != 0 && l.Outcome != o || l.Trigger != nil && *l.Trigger != by {
				continue
			}
			if t == "n" && o == job.Succeeded && by == BySchedule {
				continue
			}
			l.add(from, t, where+" AND "+t+".outcome = ? AND "+t+".trig = ?", append(slices.Clone(args), o, by)...)
		}
	}
}

func (l *runList) add(from, t, where string, args ...any) {
	due := t + ".due"
	if l.From != 0 {
		where, args = where+" AND "+due+" >= ?", append(args, int64(l.From))
	}
	if l.To != 0 {
		where, args = where+" AND "+due+" < ?", append(args, int64(l.To))
	}
	g := &leg[runEntry]{from: from, where: where, args: args, by: due + " DESC, " + t + ".id DESC"}
	if t == "n" {
		g.join = "STRAIGHT_JOIN history h ON h.id = n.id"
	}
	g.after = func(e runEntry) (string, []any) {
		return due + " < ? OR " + due + " = ? AND " + t + ".id < ?", []any{int64(e.Due), int64(e.Due), e.ID}
	}
	if l.ofJob {
		g.by = "h.due DESC, h.origin DESC, h.attempt DESC"
		g.after = func(e runEntry) (string, []any) {
			d, o := int64(e.Due), e.Origin
			return "h.due < ? OR h.due = ? AND h.origin < ? OR h.due = ? AND h.origin = ? AND h.attempt < ?", []any{d, d, o, d, o, e.Attempt}
		}
	}
	l.legs = append(l.legs, g)
}

func (l *runList) merged(columns string) *legs[runEntry] {
	return &legs[runEntry]{db: l.db, what: "list runs", columns: columns, all: l.legs, less: func(a, b runEntry) bool {
		return a.Due > b.Due || a.Due == b.Due && a.ID > b.ID // several legs are never of one job's order
	}}
}

// direct reads a list of which the legs have nothing else.
func (l *runList) direct(ctx context.Context) (RunPage, error) {
	all := l.merged(runColumns)
	for _, g := range all.all {
		g.join += " STRAIGHT_JOIN job j ON j.id = h.job_id"
		if l.Apps != nil {
			list, args := in(nil, l.Apps)
			g.cond, g.condArgs = appOfRun+" IN "+list, args
		}
	}
	all.scan = func(rows *stdsql.Rows, e *runEntry, i *int) (err error) {
		e.row, err = scanRun(rows, i)
		e.RunPlace = *e.row.Place()
		return err
	}
	found, err := all.take(ctx, l.Limit+1) // one more tells whether there is more
	if err != nil {
		return RunPage{}, err
	}
	var p RunPage
	if len(found) > l.Limit {
		found = found[:l.Limit]
		p.Next = &found[l.Limit-1].RunPlace
	}
	for _, e := range found {
		p.Rows = append(p.Rows, e.row)
	}
	return p, nil
}

// looked reads a list of which the legs have more: it looks at entries until the page is full, or at so many that the next
// page must go on.
func (l *runList) looked(ctx context.Context) (RunPage, error) {
	conds, args := []string{}, []any{}
	for _, c := range l.left {
		conds, args = append(conds, c.sql), append(args, c.args...)
	}
	all := l.merged("h.id, h.due, h.origin, h.attempt, COALESCE(" + strings.Join(conds, " AND ") + ", FALSE)")
	all.columnArgs = args
	all.scan = func(rows *stdsql.Rows, e *runEntry, i *int) error {
		return rows.Scan(i, &e.ID, &e.Due, &e.Origin, &e.Attempt, &e.fits)
	}
	found, next, err := search(ctx, all, l.Limit, func(e runEntry) bool { return e.fits })
	if err != nil || len(found) == 0 && next == nil {
		return RunPage{}, err
	}
	var p RunPage
	if next != nil {
		p.Next = &next.RunPlace
	}
	ids := make([]int64, len(found))
	for i, e := range found {
		ids[i] = e.ID
	}
	rows, err := l.db.runsByID(ctx, ids)
	for _, id := range ids {
		if r, ok := rows[id]; ok {
			p.Rows = append(p.Rows, r)
		}
	}
	return p, err
}

func (db *DB) runsByID(ctx context.Context, ids []int64) (map[int64]RunRow, error) {
	out := make(map[int64]RunRow, len(ids))
	if len(ids) == 0 {
		return out, nil
	}
	list, args := in(nil, ids)
	return out, db.query(ctx, "read runs", func(rows *stdsql.Rows) error {
		r, err := scanRun(rows)
		out[r.ID] = r
		return err
	}, "SELECT "+runColumns+" FROM history h FORCE INDEX (PRIMARY) STRAIGHT_JOIN job j ON j.id = h.job_id WHERE h.id IN "+list, args...)
}

// ExecutingRuns lists the attempts that are executing now, the latest due first. It looks at all that execute, of the job
// or of the cluster: there are never many.
func (db *DB) ExecutingRuns(ctx context.Context, f RunFilter) ([]RunRow, error) {
	where, args := []string{"t.state = 2"}, []any{}
	add := func(cond string, arg any) { where, args = append(where, cond), append(args, arg) }
	if f.JobID != 0 {
		add("t.job_id = ?", f.JobID)
	}
	if f.App != "" {
		add(appOfTask+" = ?", f.App)
	}
	restrict(&where, &args, appOfTask, f.Apps)
	if f.Node != "" {
		add("s.node = ?", f.Node)
	}
	if f.Trigger != nil {
		add("SIGN(t.origin) = ?", map[Trigger]int{BySchedule: 0, ByRequest: 1, ByBackfill: -1}[*f.Trigger])
	}
	if f.From != 0 {
		add("t.due >= ?", int64(f.From))
	}
	if f.To != 0 {
		add("t.due < ?", int64(f.To))
	}
	if a := f.After; a != nil {
		where = append(where, "(t.due < ? OR t.due = ? AND t.id < ?)")
		args = append(args, int64(a.Due), int64(a.Due), a.ID)
	}
	index := "slice"
	if f.JobID != 0 {
		index = "due"
	}
	return db.executing(ctx, index, strings.Join(where, " AND "), append(args, f.Limit)...)
}
