package audit

import (
	"slices"

	"go-crontab/job"
	"go-crontab/sql"
	"go-crontab/sql/read"
)

// Of selects the lines about one subject: a job by its id, an app by its name, or the cluster.
type Of struct {
	Kind    job.Kind
	Ref     int64
	App     string // of an app
	Actions []job.Action
}

// Before returns the last line up to an instant. If there is none, the error is sql.ErrNotFound.
func Before(r sql.Reader, of Of, at job.Micros) (job.Entry, error) {
	return near(r, of, "at <= ?", "DESC", at)
}

// After returns the first line after an instant. If there is none, the error is sql.ErrNotFound.
func After(r sql.Reader, of Of, at job.Micros) (job.Entry, error) {
	return near(r, of, "at > ?", "ASC", at)
}

// near returns the first line, in the given order, that fulfils a condition.
func near(r sql.Reader, of Of, cond, order string, at job.Micros) (job.Entry, error) {
	args := []any{of.Kind, of.Ref, int64(at)}
	cond = "kind = ? AND ref = ? AND " + cond
	if of.Kind == job.KindApp {
		cond, args = cond+" AND app = ?", append(args, of.App)
	}

	actions, args := sql.In(args, of.Actions)
	return sql.First(sql.Select(r, "read audit", sql.ScanEntry, `SELECT `+sql.AuditColumns+`
		FROM audit FORCE INDEX (ref)
		WHERE `+cond+` AND action IN `+actions+`
		ORDER BY at `+order+`, id `+order+`
		LIMIT 1`, args...))
}

// Filter says which lines to list. Zero fields do not restrict.
type Filter struct {
	JobID  int64
	Name   string // name of the changed thing
	Who    string
	App    string
	Apps   []string // only lines of these apps; nil: all lines
	Action job.Action
	Kind   job.Kind
	From   job.Micros      // at or after
	To     job.Micros      // before
	After  *read.ListPlace // only lines after this place of the list; Due is the line's time
	Limit  int
}

// Page is a page of the list.
type Page struct {
	Lines []job.Entry
	Next  *read.ListPlace // where the next page continues; nil: this is the last page
}

// entry is a line, or only its place in the list.
type entry struct {
	job.Entry
	fits bool
}

func (e *entry) place() *read.ListPlace { return &read.ListPlace{ID: e.ID, Due: e.At} }

// plan is an index from which the list can be read.
type plan struct {
	index string
	given bool             // the filter restricts its columns
	each  []read.Condition // one index range for each
}

// List lists lines, the latest first. If the filter has one condition, List reads the index of
// that condition, in the order of the list. If the filter has several, List reads the index that
// is usually most selective, and checks each row against the other conditions. Then a page may end
// before it is full, if few lines match.
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

	all := &read.Ranges[entry]{
		Reader:  r,
		What:    "list audit",
		Columns: read.Where(sql.AuditColumns),
		Less:    func(a, b entry) bool { return a.At > b.At || a.At == b.At && a.ID > b.ID },
		Scan: func(rows *sql.Rows, e *entry, i *int) error {
			e.fits = true
			return sql.ScanAudit(rows, &e.Entry, i)
		},
	}
	for _, one := range ways[way].each {
		all.All = append(all.All, rangeOf(ways[way].index, one, &f))
	}

	// With further conditions, first read only the places of the lines. Then read the whole lines,
	// but only those that fit.
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

// rangeOf returns one range of an index, restricted to the filter's time and place.
func rangeOf(index string, one read.Condition, f *Filter) *read.Range[entry] {
	cond, args := one.SQL, slices.Clone(one.Args)
	if f.From != 0 {
		cond, args = cond+" AND at >= ?", append(args, int64(f.From))
	}
	if f.To != 0 {
		cond, args = cond+" AND at < ?", append(args, int64(f.To))
	}

	g := &read.Range[entry]{
		From:  "audit FORCE INDEX (" + index + ")",
		Where: read.Where(cond, args...),
		By:    "at DESC, id DESC",
		After: func(e entry) read.Condition {
			return read.Where("at <= ? AND (at < ? OR id < ?)", int64(e.At), int64(e.At), e.ID)
		},
	}
	if f.After != nil {
		g.Last = &entry{Entry: job.Entry{ID: f.After.ID, At: f.After.Due}}
	}
	return g
}

// byID reads the lines at the given places, in the same order.
func byID(r sql.Reader, places []job.Entry) ([]job.Entry, error) {
	if len(places) == 0 {
		return nil, nil
	}

	ids := make([]int64, len(places))
	for i := range places {
		ids[i] = places[i].ID
	}
	list, args := sql.In(nil, ids)

	out, err := sql.Select(r, "read audit", sql.ScanEntry, `SELECT `+sql.AuditColumns+`
		FROM audit FORCE INDEX (PRIMARY)
		WHERE id IN `+list, args...)
	slices.SortFunc(out, func(a, b job.Entry) int {
		return slices.Index(ids, a.ID) - slices.Index(ids, b.ID)
	})
	return out, err
}
