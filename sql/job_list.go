package sql

import (
	"context"
	stdsql "database/sql"
	"maps"
	"slices"
	"strings"

	"go-crontab/job"
)

// JobFilter says which living jobs to list. Zero fields do not restrict.
type JobFilter struct {
	App      string
	Apps     []string // only in these, nil: in all
	Name     string   // contained in the name
	Status   job.Status
	Owner    string
	Group    string
	Calendar string
	Labels   map[string]string // all of them
	After    int64             // only what the list has after the job of this id
	Part     string            // and this part of its name, in a list in the order of the names
	Limit    int
}

// JobPlace is a place in a list of jobs.
type JobPlace struct {
	ID   int64
	Part string // of the name, in a list in the order of the names
}

// JobPage is a part of a list of jobs.
type JobPage struct {
	Rows []JobRow
	Next *JobPlace // where it goes on; nil: it ends
}

const (
	// examinedMost is how many entries of an index one page looks at that it may not show: where several conditions
	// hold of many jobs, or runs, each, and of few together. Then a page has less than it may, and goes on.
	examinedMost = 2000
	// manyApps is from how many apps on a list does not read each of them by itself.
	manyApps = 16
	// probed is how many entries are counted to find out which condition holds of fewest.
	probed = 200
)

// jobEntry is an entry of an index that leads to a job.
type jobEntry struct {
	JobPlace
	fits bool
	row  JobRow // unless only the place is read
}

// Jobs reads a list up to its limit, however long that takes: by id, or, where Apps is nil, those whose names contain
// something in the order of the names from there on.
func (db *DB) Jobs(ctx context.Context, f JobFilter) ([]JobRow, error) {
	var out []JobRow
	most := f.Limit
	for {
		p, err := db.JobPage(ctx, f)
		if err != nil {
			return nil, err
		}
		out = append(out, p.Rows...)
		if p.Next == nil || len(out) >= most {
			return out, nil
		}
		f.After, f.Part, f.Limit = p.Next.ID, p.Next.Part, most-len(out)
	}
}

// JobPage reads a part of a list: at most as many as the limit, and less, even nothing, when so many entries were looked
// at without finding more that the answer would take too long.
func (db *DB) JobPage(ctx context.Context, f JobFilter) (JobPage, error) {
	if f.App != "" && f.Apps != nil && !slices.Contains(f.Apps, f.App) || f.Apps != nil && len(f.Apps) == 0 {
		return JobPage{}, nil
	}
	l := jobList{db: db, JobFilter: f, limited: f.Apps != nil}
	if l.App == "" && len(l.Apps) == 1 {
		l.App = l.Apps[0]
	}
	if l.App != "" {
		l.Apps = []string{l.App}
	}
	var err error
	if l.pauses, err = db.livePauses(ctx); err != nil {
		return JobPage{}, err
	}
	source, err := l.choose(ctx)
	if err != nil || len(source.legs) == 0 {
		return JobPage{}, err
	}
	if left := append(l.left(source), source.also...); len(left) > 0 {
		return l.looked(ctx, source, left)
	}
	return l.direct(ctx, source)
}

// jobList is a list that is being read.
type jobList struct {
	db *DB
	JobFilter
	limited bool       // to apps, by who asks
	pauses  []PauseRow // of apps and of the cluster, that are not over
}

// jobSource is an index, or a table that is one, by which a list is read.
type jobSource struct {
	legs    []*leg[jobEntry]
	fulfils []string // the conditions that hold of all of it
	also    []condition
}

// condition is one of the filter's.
type condition struct {
	sql  string
	args []any
}

// left are the conditions of the filter that a source does not fulfil.
func (l *jobList) left(s jobSource) []condition {
	var out []condition
	add := func(name, sql string, args ...any) {
		if !slices.Contains(s.fulfils, name) {
			out = append(out, condition{sql, args})
		}
	}
	if l.Apps != nil {
		list, args := in(nil, l.Apps)
		add("app", "job.app IN "+list, args...)
	}
	if l.Name != "" {
		add("name", "INSTR(job.name, ?) > 0", l.Name)
	}
	for _, t := range l.terms() {
		term := t.in("")
		add(t.name, "EXISTS (SELECT 1 FROM job_term x WHERE x.term = ? AND x.job_id = job.id)", term[:])
	}
	if l.Status != "" {
		sql, args := l.isStatus()
		add("status", sql, args...)
	}
	return out
}

// wantedTerm is a condition that a term stands for.
type wantedTerm struct {
	name string
	in   func(app string) job.Term
}

func (l *jobList) terms() []wantedTerm {
	var out []wantedTerm
	if l.Group != "" {
		out = append(out, wantedTerm{"group", func(app string) job.Term { return job.GroupTerm(app, l.Group) }})
	}
	if l.Owner != "" {
		out = append(out, wantedTerm{"owner", func(app string) job.Term { return job.OwnerTerm(app, l.Owner) }})
	}
	if l.Calendar != "" {
		out = append(out, wantedTerm{"calendar", func(app string) job.Term { return job.CalendarTerm(app, l.Calendar) }})
	}
	for _, k := range slices.Sorted(maps.Keys(l.Labels)) {
		out = append(out, wantedTerm{"label " + k, func(app string) job.Term { return job.LabelTerm(app, k, l.Labels[k]) }})
	}
	return out
}

// hasTasks tells whether a job has a scheduled task. The LIMIT keeps the server from reading all tasks to make a table of
// their jobs.
const hasTasks = "(COALESCE((SELECT 1 FROM task FORCE INDEX (due) WHERE task.job_id = job.id AND task.origin = 0 LIMIT 1), 0) = 1)"

// isStatus says job.Status in SQL.
func (l *jobList) isStatus() (string, []any) {
	covered, args := "FALSE", []any(nil)
	switch apps, cluster := l.covered(); {
	case cluster:
		covered = "TRUE"
	case len(apps) > 0:
		covered, args = in(nil, apps)
		covered = "job.app IN " + covered
	}
	switch l.Status {
	case job.Broken:
		return "job.stage = 3", nil
	case job.Paused:
		return "(job.stage = 2 OR job.stage IN (0, 1, 4) AND " + covered + ")", args
	case job.Finished:
		return "((job.stage = 4 OR job.stage = 1 AND NOT " + hasTasks + ") AND NOT " + covered + ")", args
	}
	return "((job.stage = 0 OR job.stage = 1 AND " + hasTasks + ") AND NOT " + covered + ")", args
}

// covered returns the apps that are paused, of those that are wanted, and whether the cluster is.
func (l *jobList) covered() (apps []string, cluster bool) {
	for _, p := range l.pauses {
		if p.App == "" {
			return nil, true
		}
		if l.Apps == nil || slices.Contains(l.Apps, p.App) {
			apps = append(apps, p.App)
		}
	}
	return apps, false
}

// choose picks the source of which least must be looked at: the one that has fewest entries, or whose entries are farthest
// apart if all have many.
func (l *jobList) choose(ctx context.Context) (jobSource, error) {
	sources := l.sources()
	best, fewest, farthest := sources[0], probed, -1.0
	if len(sources) > 1 {
		for _, s := range sources {
			n, apart, err := l.legs(s, "").probe(ctx, l.After, probed)
			if err != nil {
				return jobSource{}, err
			}
			if n < fewest || n == fewest && n == probed && apart > farthest {
				best, fewest, farthest = s, n, apart
			}
		}
	}
	if l.After != 0 {
		for _, g := range best.legs {
			g.last = &jobEntry{JobPlace: JobPlace{l.After, l.Part}}
		}
	}
	return best, nil
}

// sources are the ways to read the list.
func (l *jobList) sources() []jobSource {
	var out []jobSource
	// The order of the names is another one, and where a page of it ends may be the name of anybody's job: none for who is
	// limited to apps.
	if l.Name != "" && !l.limited {
		return []jobSource{l.byName()}
	}
	for _, t := range l.terms() {
		out = append(out, l.byTerm(t))
	}
	if l.Status != "" {
		out = append(out, l.byStatus())
	}
	if out == nil {
		out = append(out, l.byApp())
	}
	return out
}

// add gives a source a leg for each app that is wanted, or one of all.
func (s *jobSource) add(l *jobList, legOf func(app string) *leg[jobEntry]) {
	if l.Apps == nil || len(l.Apps) > manyApps {
		s.legs = append(s.legs, legOf(""))
		return
	}
	for _, app := range l.Apps {
		s.legs = append(s.legs, legOf(app))
	}
	s.fulfils = append(s.fulfils, "app")
}

func behindID(column string) func(jobEntry) (string, []any) {
	return func(e jobEntry) (string, []any) { return column + " > ?", []any{e.ID} }
}

func (l *jobList) byApp() (s jobSource) {
	s.add(l, func(app string) *leg[jobEntry] {
		if app == "" {
			return &leg[jobEntry]{from: "job FORCE INDEX (living)", where: "job.living = 1", by: "job.id", after: behindID("job.id")}
		}
		return &leg[jobEntry]{from: "job FORCE INDEX (app_living)", where: "job.app = ? AND job.living = 1", args: []any{app}, by: "job.id", after: behindID("job.id")}
	})
	return s
}

func (l *jobList) byTerm(t wantedTerm) jobSource {
	s := jobSource{fulfils: []string{t.name}}
	s.add(l, func(app string) *leg[jobEntry] {
		term := t.in(app)
		return &leg[jobEntry]{from: "job_term t FORCE INDEX (PRIMARY)", where: "t.term = ?", args: []any{term[:]}, by: "t.job_id", after: behindID("t.job_id"),
			join: "STRAIGHT_JOIN job ON job.id = t.job_id", cond: "job.living = 1"}
	})
	return s
}

// byName reads the names from where they contain the text. Of several such places in one name the first counts.
func (l *jobList) byName() jobSource {
	head := []rune(l.Name)
	head = head[:min(len(head), job.MaxPart)]
	g := &leg[jobEntry]{
		from: "job_part p FORCE INDEX (PRIMARY)", where: "p.part LIKE ?", by: "p.part, p.job_id",
		args: []any{strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(string(head)) + "%"},
		join: "STRAIGHT_JOIN job ON job.id = p.job_id", cond: "job.living = 1",
		after: func(e jobEntry) (string, []any) {
			return "p.part > ? OR p.part = ? AND p.job_id > ?", []any{e.Part, e.Part, e.ID}
		},
	}
	s := jobSource{legs: []*leg[jobEntry]{g}, fulfils: []string{"name"}}
	first := condition{"LOCATE(?, job.name) = p.pos + 1", []any{l.Name}}
	if len(head) == job.MaxPart { // there may be more of it than parts say
		s.also = []condition{first}
		return s
	}
	g.cond, g.condArgs = g.cond+" AND "+first.sql, first.args
	return s
}

// byStatus reads the stages of which a status consists.
func (l *jobList) byStatus() (s jobSource) {
	apps, cluster := l.covered()
	var stages []int
	exact := true
	switch {
	case l.Status == job.Broken:
		stages = []int{3}
	case l.Status == job.Paused && (cluster || len(apps) > manyApps):
		stages, exact = []int{0, 1, 2, 4}, cluster
	case l.Status == job.Paused:
		stages = []int{2}
		for _, app := range apps {
			for _, stage := range []int{0, 1, 4} {
				s.legs = append(s.legs, stageLeg(app, stage, ""))
			}
		}
	case cluster:
		return s
	case l.Status == job.Finished:
		stages, exact = []int{4, 1}, len(apps) == 0
	default:
		stages, exact = []int{0, 1}, len(apps) == 0
	}
	for _, stage := range stages {
		cond := ""
		if stage == 1 && exact && !cluster {
			cond = map[job.Status]string{job.Active: hasTasks, job.Finished: "NOT " + hasTasks}[l.Status]
		}
		s.add(l, func(app string) *leg[jobEntry] { return stageLeg(app, stage, cond) })
	}
	if exact {
		s.fulfils = append(s.fulfils, "status")
	}
	return s
}

func stageLeg(app string, stage int, cond string) *leg[jobEntry] {
	if app == "" {
		return &leg[jobEntry]{from: "job FORCE INDEX (stage)", where: "job.stage = ?", args: []any{stage}, by: "job.id", after: behindID("job.id"), cond: cond}
	}
	return &leg[jobEntry]{from: "job FORCE INDEX (app_stage)", where: "job.app = ? AND job.stage = ?", args: []any{app, stage}, by: "job.id",
		after: behindID("job.id"), cond: cond}
}

func (l *jobList) legs(s jobSource, columns string) *legs[jobEntry] {
	part := "''"
	if slices.Contains(s.fulfils, "name") {
		part = "p.part"
	}
	return &legs[jobEntry]{
		db: l.db, what: "list jobs", columns: "job.id, " + part + ", " + columns, all: s.legs,
		less: func(a, b jobEntry) bool { return a.Part < b.Part || a.Part == b.Part && a.ID < b.ID },
	}
}

// direct reads a list of which a source has nothing else.
func (l *jobList) direct(ctx context.Context, s jobSource) (JobPage, error) {
	all := l.legs(s, jobListColumns)
	all.scan = func(rows *stdsql.Rows, e *jobEntry, i *int) error {
		var err error
		e.row, err = scanJob(rows, i, &e.ID, &e.Part)
		return err
	}
	found, err := all.take(ctx, l.Limit+1) // one more tells whether there is more
	if err != nil {
		return JobPage{}, err
	}
	var p JobPage
	if len(found) > l.Limit {
		found = found[:l.Limit]
		p.Next = &found[l.Limit-1].JobPlace
	}
	for _, e := range found {
		p.Rows = append(p.Rows, l.cover(e.row))
	}
	return p, nil
}

// cover adds the pauses to a job that was read without.
func (l *jobList) cover(j JobRow) JobRow {
	for _, p := range l.pauses {
		if p.App == "" || p.App == j.Spec.App {
			j.Covers = append(j.Covers, p.Pause)
		}
	}
	return j
}

// looked reads a list of which a source has more: it looks at entries until the page is full, or at so many that the next
// page must go on.
func (l *jobList) looked(ctx context.Context, s jobSource, left []condition) (JobPage, error) {
	conds, args := []string{}, []any{}
	for _, c := range left {
		conds, args = append(conds, c.sql), append(args, c.args...)
	}
	all := l.legs(s, "COALESCE("+strings.Join(conds, " AND ")+", FALSE)")
	all.columnArgs = args
	all.scan = func(rows *stdsql.Rows, e *jobEntry, i *int) error { return rows.Scan(i, &e.ID, &e.Part, &e.fits) }
	found, next, err := search(ctx, all, l.Limit, func(e jobEntry) bool { return e.fits })
	if err != nil {
		return JobPage{}, err
	}
	var p JobPage
	if next != nil {
		p.Next = &next.JobPlace
	}
	ids := make([]int64, len(found))
	for i, e := range found {
		ids[i] = e.ID
	}
	rows, err := l.db.jobsByID(ctx, ids)
	for _, id := range ids {
		if j, ok := rows[id]; ok && !j.Deleted {
			p.Rows = append(p.Rows, l.cover(j))
		}
	}
	return p, err
}

// LivingJobs reads the living jobs of these ids, with their pauses. Of an id that no living job has it returns nothing.
func (db *DB) LivingJobs(ctx context.Context, ids []int64) (map[int64]JobRow, error) {
	l := jobList{db: db}
	var err error
	if l.pauses, err = db.livePauses(ctx); err != nil {
		return nil, err
	}
	rows, err := db.jobsByID(ctx, ids)
	for id, j := range rows {
		if j.Deleted {
			delete(rows, id)
		} else {
			rows[id] = l.cover(j)
		}
	}
	return rows, err
}

// jobsByID reads jobs without their pauses.
func (db *DB) jobsByID(ctx context.Context, ids []int64) (map[int64]JobRow, error) {
	out := make(map[int64]JobRow, len(ids))
	if len(ids) == 0 {
		return out, nil
	}
	list, args := in(nil, ids)
	return out, db.query(ctx, "read jobs", func(rows *stdsql.Rows) error {
		j, err := scanJob(rows)
		out[j.ID] = j
		return err
	}, "SELECT "+jobListColumns+" FROM job FORCE INDEX (PRIMARY) WHERE id IN "+list, args...)
}

// livePauses lists the pauses that last.
func (db *DB) livePauses(ctx context.Context) ([]PauseRow, error) {
	var out []PauseRow
	err := db.query(ctx, "list pauses", pauseRows(&out), "SELECT "+pauseColumns+" FROM pause WHERE ended = 0 AND (until = 0 OR until > "+now+")")
	return out, err
}
