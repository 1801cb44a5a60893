package audit

import (
	"slices"

	"go-crontab/job"
	"go-crontab/sql"
	"go-crontab/sql/read"
)

// Of names whose lines to look for: those of a job by its id, of an app by its name, of the cluster.
type Of struct {
	Kind    job.Kind
	Ref     int64
	App     string // of an app
	Actions []job.Action
}

// Before returns the last line up to an instant, or sql.ErrNotFound.
func Before(r sql.Reader, of Of, at job.Micros) (job.Entry, error) {
	return near(r, of, "at <= ?", "DESC", at)
}

// After returns the first line after an instant, or sql.ErrNotFound.
func After(r sql.Reader, of Of, at job.Micros) (job.Entry, error) {
	return near(r, of, "at > ?", "ASC", at)
}

func near(r sql.Reader, of Of, cond, order string, at job.Micros) (job.Entry, error) {
	args := []any{of.Kind, of.Ref, int64(at)}
	cond = "kind = ? AND ref = ? AND " + cond
	if of.Kind == job.KindApp {
		cond, args = cond+" AND app = ?", append(args, of.App)
	}
	actions, args := sql.In(args, of.Actions)
	return sql.First(sql.Select(r, "read audit", sql.ScanEntry, "SELECT "+sql.AuditColumns+" FROM audit FORCE INDEX (ref) WHERE "+cond+" AND action IN "+actions+
		" ORDER BY at "+order+", id "+order+" LIMIT 1", args...))
}

// Filter says which lines to list. Zero fields do not restrict.
type Filter struct {
	JobID  int64
	Name   string // of what was changed
	Who    string
	App    string
	Apps   []string // only in these, nil: in all, and of what belongs to none
	Action job.Action
	Kind   job.Kind
	From   job.Micros      // at or after
	To     job.Micros      // before
	After  *read.ListPlace // only what the list has after this place: ID and Due, which is the line's instant
	Limit  int
}

// Page is a part of the audit.
type Page struct {
	Lines []job.Entry
	Next  *read.ListPlace // where it goes on; nil: it ends
}

// entry is a line, or only its place.
type entry struct {
	job.Entry
	fits bool
}

func (e *entry) place() *read.ListPlace { return &read.ListPlace{ID: e.ID, Due: e.At} }

// plan is an index to read the list from.
type plan struct {
	index string
	given bool             // the filter has what it is by
	each  []read.Condition // a range for each
}

// List lists lines, the latest first. One condition alone is read from its index, in which the lines stand in the order
// of the list. Of several the one that leaves least is, as a rule, and the others are looked at: a page that meets few of
// such lines ends before it is full, and says where to go on.
func List(r sql.Reader, f Filter) (Page, error) {
	ways := []plan{
		{"ref", f.JobID != 0, []read.Condition{read.Where("kind = ? AND ref = ?", job.KindJob, f.JobID)}},
		{"name", f.Name != "", []read.Condition{read.Where("name = ?", f.Name)}},
		{"who", f.Who != "", []read.Condition{read.Where("who = ?", f.Who)}},
		{"app", f.App != "", []read.Condition{read.Where("app = ?", f.App)}},
		{"app", f.Apps != nil && len(f.Apps) <= read.ManyApps, read.OneEach("app = ?", f.Apps)},
		{"action", f.Action != "", []read.Condition{read.Where("action = ?", f.Action)}},
		{"kind", f.Kind != "", []read.Condition{read.Where("kind = ?", f.Kind)}},
		{"at", true, []read.Condition{read.Where("TRUE")}},
	}
	way := slices.IndexFunc(ways, func(w plan) bool { return w.given })
	var left []read.Condition
	for _, other := range ways[way+1:] {
		if other.given && other.index != "at" {
			left = append(left, read.AnyOf(other.each))
		}
	}
	if len(f.Apps) > read.ManyApps {
		list, args := sql.In(nil, f.Apps)
		left = append(left, read.Where("app IN "+list, args...))
	}
	all := &read.Ranges[entry]{Reader: r, What: "list audit", Columns: read.Where(sql.AuditColumns),
		Less: func(a, b entry) bool { return a.At > b.At || a.At == b.At && a.ID > b.ID },
		Scan: func(rows *sql.Rows, e *entry, i *int) error {
			e.fits = true
			return sql.ScanAudit(rows, &e.Entry, i)
		}}
	for _, one := range ways[way].each {
		all.All = append(all.All, rangeOf(ways[way].index, one, &f))
	}
	if left != nil {
		fits := read.AllOf(left)
		all.Columns = read.Where("id, at, "+fits.SQL, fits.Args...)
		all.Scan = func(rows *sql.Rows, e *entry, i *int) error { return rows.Scan(i, &e.ID, &e.At, &e.fits) }
	}
	found, next, err := read.Search(all, f.Limit, func(e entry) bool { return e.fits })
	if err != nil {
		return Page{}, err
	}
	var p Page
	if next != nil {
		p.Next = next.place()
	}
	for _, e := range found {
		p.Lines = append(p.Lines, e.Entry)
	}
	if left != nil {
		p.Lines, err = byID(r, p.Lines)
	}
	return p, err
}

func rangeOf(index string, one read.Condition, f *Filter) *read.Range[entry] {
	cond, args := one.SQL, slices.Clone(one.Args)
	if f.From != 0 {
		cond, args = cond+" AND at >= ?", append(args, int64(f.From))
	}
	if f.To != 0 {
		cond, args = cond+" AND at < ?", append(args, int64(f.To))
	}
	g := &read.Range[entry]{From: "audit FORCE INDEX (" + index + ")", Where: read.Where(cond, args...), By: "at DESC, id DESC",
		After: func(e entry) read.Condition {
			return read.Where("at <= ? AND (at < ? OR id < ?)", int64(e.At), int64(e.At), e.ID)
		}}
	if f.After != nil {
		g.Last = &entry{Entry: job.Entry{ID: f.After.ID, At: f.After.Due}}
	}
	return g
}

// byID reads the lines whose places are given, in that order.
func byID(r sql.Reader, places []job.Entry) ([]job.Entry, error) {
	if len(places) == 0 {
		return nil, nil
	}
	ids := make([]int64, len(places))
	for i := range places {
		ids[i] = places[i].ID
	}
	list, args := sql.In(nil, ids)
	out, err := sql.Select(r, "read audit", sql.ScanEntry, "SELECT "+sql.AuditColumns+" FROM audit FORCE INDEX (PRIMARY) WHERE id IN "+list, args...)
	slices.SortFunc(out, func(a, b job.Entry) int { return slices.Index(ids, a.ID) - slices.Index(ids, b.ID) })
	return out, err
}
