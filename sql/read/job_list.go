package read

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go-crontab/job"
	"go-crontab/sql"
)

// JobFilter selects living jobs. Zero fields do not restrict.
type JobFilter struct {
	App      string
	Apps     []string // only jobs in these apps; nil: all
	Name     string   // a part of the name
	Status   job.Status
	Owner    string
	Group    string
	Calendar string
	Labels   map[string]string // all must match
	After    int64             // only jobs after the one with this id
	Part     string            // for a list by name: the part of that job's name
	Limit    int
}

// JobPlace is a position in a list of jobs.
type JobPlace struct {
	ID   int64
	Part string // for a list by name: the part of the name
}

// JobPage is a part of a list of jobs.
type JobPage struct {
	Rows []Job
	Next *JobPlace // position of the next page; nil: no more pages
}

const (
	// If a filter allows at least manyJobApps apps, a list reads the jobs of all apps and filters
	// them.
	manyJobApps = 17
	// probed is how many entries are counted to find the condition that matches the fewest jobs.
	probed = 100
)

// Jobs reads a list up to its limit, even if the list has many pages.
func (db *DB) Jobs(ctx context.Context, f JobFilter) ([]Job, error) {
	var out []Job
	for most := f.Limit; ; {
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

// JobPage reads a page of a list of living jobs. The list is ordered by id. If the filter has a
// name and Apps is nil, the list is ordered by name. A page has at most Limit jobs. It may have
// fewer, even none, because only a bounded number of entries is read for it.
func (db *DB) JobPage(ctx context.Context, f JobFilter) (JobPage, error) {
	r := db.Reader(ctx)
	apps, none, err := appsOf(r, f.App, f.Apps)
	if err != nil || none {
		return JobPage{}, err
	}

	l := jobList{reader: r, JobFilter: f, apps: apps}
	if err := l.readAppNames(); err != nil {
		return JobPage{}, err
	}

	source, err := l.choose()
	if err != nil {
		return JobPage{}, err
	}

	found, next, err := l.merge(source).page(f.Limit)
	if err != nil {
		return JobPage{}, err
	}

	var p JobPage
	if next != nil {
		p.Next = &next.JobPlace
	}

	ids := make([]int64, len(found))
	for i := range found {
		ids[i] = found[i].ID
	}

	rows, err := jobsByID(r, ids)
	for _, id := range ids {
		if j := rows[id]; j != nil && !j.Deleted {
			p.Rows = append(p.Rows, *j)
		}
	}

	return p, err
}

// jobEntry is an index entry that leads to a job.
type jobEntry struct {
	JobPlace
	fits bool
}

func scanJobEntry(rows *sql.Rows) (e jobEntry, err error) {
	err = rows.Scan(&e.ID, &e.Part, &e.fits)
	return e, err
}

// jobList is a list that is being read.
type jobList struct {
	reader sql.Reader
	JobFilter
	apps  []int32          // nil: all apps
	names map[int32]string // names of the apps by id
}

// jobSource is an index from which a list is read, or a table that serves as an index.
type jobSource struct {
	condition string // the condition that all its entries meet
	from      string // the index
	join      string // joins jobs to its entries
	id        string // the column with the id of the job
	ranges    []Condition
	byName    bool
}

func (l *jobList) readAppNames() error {
	if len(l.apps) == 0 || len(l.apps) >= manyJobApps {
		return nil
	}

	l.names = map[int32]string{}
	query := `
		SELECT id, name
		FROM app FORCE INDEX (PRIMARY)
		WHERE id IN ` + list(l.apps)

	scan := func(rows *sql.Rows) (id int32, err error) {
		var name string
		err = rows.Scan(&id, &name)
		l.names[id] = name
		return id, err
	}

	_, err := sql.Select(l.reader, "read names of apps", scan, query)
	return err
}

// fewApps reports whether each app is read as a separate range.
func (l *jobList) fewApps() bool { return l.names != nil }

// wantedTerm is a condition that table job_term can answer.
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
		out = append(out, wantedTerm{"calendar", func(app string) job.Term {
			return job.CalendarTerm(app, l.Calendar)
		}})
	}

	for _, k := range slices.Sorted(maps.Keys(l.Labels)) {
		out = append(out, wantedTerm{"label " + k, func(app string) job.Term {
			return job.LabelTerm(app, k, l.Labels[k])
		}})
	}

	return out
}

// awaitsOthers is the condition that no schedule makes the job due: it follows other jobs, has a
// delay, or is manual.
const awaitsOthers = "EXISTS (SELECT 1 FROM job_ref w FORCE INDEX (job) WHERE w.job_id = j.id AND w.kind IN (6, 7, 8))"

// statusConditions are the SQL conditions of job.Status.
var statusConditions = map[job.Status]string{
	job.Broken: "j.error <> ''",
	job.Paused: "j.error = '' AND (j.paused = 1 OR " + pausedApps + ")",
	job.Finished: "j.error = '' AND j.paused = 0 AND j.next_due IS NULL AND NOT " + isLive +
		" AND NOT " + awaitsOthers + " AND NOT " + pausedApps,
	job.Active: "j.error = '' AND j.paused = 0 AND (j.next_due IS NOT NULL OR " + isLive + " OR " +
		awaitsOthers + ") AND NOT " + pausedApps,
}

// left returns the conditions of the filter that the query must still check, because the index of
// the source does not ensure them.
func (l *jobList) left(s jobSource) []Condition {
	out := []Condition{{"j.living = 1", nil}}
	if l.apps != nil {
		out = append(out, Condition{"j.app_id IN " + list(l.apps), nil})
	}

	if l.Name != "" && s.byName {
		// If a name contains the text several times, only the first place counts. A part may be too
		// short to hold the whole text.
		out = append(out, Condition{"LOCATE(?, j.name) = p.pos + 1", []any{l.Name}})
	} else if l.Name != "" {
		out = append(out, Condition{"INSTR(j.name, ?) > 0", []any{l.Name}})
	}

	for _, t := range l.terms() {
		if t.name != s.condition {
			term := t.in("")
			out = append(out, Condition{
				"EXISTS (SELECT 1 FROM job_term x WHERE x.term = ? AND x.job_id = j.id)", []any{term[:]},
			})
		}
	}

	if status := statusConditions[l.Status]; status != "" {
		out = append(out, Condition{"(" + status + ")", nil})
	}
	return out
}

// choose picks the source with the fewest entries to look at.
func (l *jobList) choose() (jobSource, error) {
	if l.Name != "" && l.Apps == nil {
		// The position of the next page contains a part of a job's name, perhaps of a job in
		// another app. So a person who may see only some apps must not get this list.
		return l.byName(), nil
	}

	var sources []jobSource
	for _, t := range l.terms() {
		sources = append(sources, l.byTerm(t))
	}

	switch l.Status {
	case job.Broken: // the index holds the beginning of errors; every error sorts after '!'
		sources = append(sources, jobSource{
			from:   "job j FORCE INDEX (broken)",
			id:     "j.id",
			ranges: []Condition{{"j.error >= '!'", nil}},
		})
	case job.Paused:
		some, err := l.appsPaused()
		if err != nil {
			return jobSource{}, err
		}
		if some {
			break // then all jobs of these apps are paused, mostly without a row in job_pause
		}

		sources = append(sources, jobSource{
			from:   "job_pause p FORCE INDEX (PRIMARY)",
			join:   "STRAIGHT_JOIN job j FORCE INDEX (PRIMARY) ON j.id = p.job_id",
			id:     "p.job_id",
			ranges: []Condition{{"TRUE", nil}},
		})
	}

	if len(sources) == 0 || l.fewApps() {
		sources = append(sources, l.byApp())
	}
	return l.fewest(sources)
}

// fewest returns the source with the fewest entries after the position of the page. Of each range
// it counts at most probed entries.
func (l *jobList) fewest(sources []jobSource) (jobSource, error) {
	best, least := sources[0], probed+1
	if len(sources) == 1 {
		return best, nil
	}

	for _, s := range sources {
		count := 0
		for _, c := range s.ranges {
			query := `
				SELECT COUNT(*)
				FROM (
					SELECT 1
					FROM ` + s.from + `
					WHERE ` + c.SQL + ` AND ` + s.id + ` > ?
					LIMIT ?) some`

			n, err := sql.Select(l.reader, "count entries", scanID, query,
				append(slices.Clone(c.Args), l.After, probed)...)
			if err != nil {
				return best, err
			}

			count += int(n[0])
		}

		if count < least {
			best, least = s, count
		}
	}

	return best, nil
}

// byApp reads jobs by id.
func (l *jobList) byApp() jobSource {
	if !l.fewApps() {
		return jobSource{from: "job j FORCE INDEX (PRIMARY)", id: "j.id", ranges: []Condition{{"TRUE", nil}}}
	}
	s := jobSource{from: "job j FORCE INDEX (listed)", id: "j.id"}
	for _, app := range l.apps {
		s.ranges = append(s.ranges, Condition{fmt.Sprintf("j.app_id = %d AND j.living = 1", app), nil})
	}
	return s
}

// byTerm reads jobs by a term of their definitions.
func (l *jobList) byTerm(t wantedTerm) jobSource {
	s := jobSource{
		condition: t.name,
		id:        "t.job_id",
		from:      "job_term t FORCE INDEX (PRIMARY)",
		join:      "STRAIGHT_JOIN job j FORCE INDEX (PRIMARY) ON j.id = t.job_id",
	}

	apps := []string{""}
	if l.fewApps() {
		apps = slices.Sorted(maps.Values(l.names))
	}

	for _, app := range apps {
		term := t.in(app)
		s.ranges = append(s.ranges, Condition{"t.term = ?", []any{term[:]}})
	}

	return s
}

// byName reads the parts of names that begin with the text.
func (l *jobList) byName() jobSource {
	head := []rune(l.Name)
	head = head[:min(len(head), job.MaxPart)]
	pattern := strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(string(head)) + "%"
	return jobSource{
		byName: true,
		id:     "p.job_id",
		from:   "job_part p FORCE INDEX (PRIMARY)",
		join:   "STRAIGHT_JOIN job j FORCE INDEX (PRIMARY) ON j.id = p.job_id",
		ranges: []Condition{{"p.part LIKE ?", []any{pattern}}},
	}
}

func (l *jobList) merge(s jobSource) *merge[jobEntry] {
	fits, fitArgs := all(l.left(s))
	out := &merge[jobEntry]{
		reader: l.reader,
		what:   "list jobs",
		scan:   scanJobEntry,
		fits: func(e *jobEntry) bool {
			return e.fits
		},
	}
	out.less = func(a, b *jobEntry) bool { return a.Part < b.Part || a.Part == b.Part && a.ID < b.ID }

	part, order := "''", s.id
	if s.byName {
		part, order = "p.part", "p.part, p.job_id"
	}

	for _, c := range s.ranges {
		g := &indexRange[jobEntry]{query: func(after *jobEntry, limit int) (string, []any) {
			position, args := "TRUE", slices.Concat(fitArgs, c.Args)
			switch {
			case after == nil:
			case s.byName:
				position = "p.part >= ? AND (p.part > ? OR p.job_id > ?)"
				args = append(args, after.Part, after.Part, after.ID)
			default:
				position = s.id + " > ?"
				args = append(args, after.ID)
			}

			return `
				SELECT ` + s.id + `, ` + part + `, COALESCE(` + fits + `, FALSE)
				FROM ` + s.from + ` ` + s.join + `
				WHERE ` + c.SQL + ` AND ` + position + `
				ORDER BY ` + order + `
				LIMIT ?`, append(args, limit)
		}}

		if l.After != 0 {
			g.last = &jobEntry{JobPlace: JobPlace{l.After, l.Part}}
		}
		out.all = append(out.all, g)
	}

	return out
}
