package sql

import (
	"context"
	stdsql "database/sql"
	"slices"
	"strings"

	"go-crontab/job"
)

// AuditFilter says which lines to list. Zero fields do not restrict.
type AuditFilter struct {
	JobID  int64
	Name   string // of what was changed
	Who    string
	App    string
	Apps   []string // only in these, nil: in all, and of what belongs to none
	Action job.Action
	Kind   job.Kind
	From   job.Micros // at or after
	To     job.Micros // before
	After  *ListPlace // only what the list has after this place: ID and Due, which is the line's instant
	Limit  int
}

// AuditPage is a part of the audit.
type AuditPage struct {
	Lines []job.Entry
	Next  *ListPlace // where it goes on; nil: it ends
}

// auditEntry is a line, or only its place.
type auditEntry struct {
	job.Entry
	fits bool
}

func (e *auditEntry) place() *ListPlace { return &ListPlace{ID: e.ID, Due: e.At} }

// auditWay is an index to read the list from.
type auditWay struct {
	index string
	given bool        // the filter has what it is by
	each  []condition // a leg for each
}

// manyAppsOfAudit is from how many apps on the list does not read each of them by itself.
const manyAppsOfAudit = 16

// Audit lists lines, the latest first. One condition alone is read from its index, in which the lines stand in the order
// of the list. Of several the one that leaves least is, as a rule, and the others are looked at: a page that meets few of
// such lines ends before it is full, and says where to go on.
func (db *DB) Audit(ctx context.Context, f AuditFilter) (AuditPage, error) {
	ways := []auditWay{
		{"ref", f.JobID != 0, []condition{{"kind = ? AND ref = ?", []any{job.KindJob, f.JobID}}}},
		{"name", f.Name != "", []condition{{"name = ?", []any{f.Name}}}},
		{"who", f.Who != "", []condition{{"who = ?", []any{f.Who}}}},
		{"app", f.App != "", []condition{{"app = ?", []any{f.App}}}},
		{"app", f.Apps != nil && len(f.Apps) <= manyAppsOfAudit, oneEach("app = ?", f.Apps)},
		{"action", f.Action != "", []condition{{"action = ?", []any{f.Action}}}},
		{"kind", f.Kind != "", []condition{{"kind = ?", []any{f.Kind}}}},
		{"at", true, []condition{{"TRUE", nil}}},
	}
	way := slices.IndexFunc(ways, func(w auditWay) bool { return w.given })
	var left []condition
	for _, other := range ways[way+1:] {
		if other.given && other.index != "at" {
			left = append(left, anyOf(other.each))
		}
	}
	if len(f.Apps) > manyAppsOfAudit {
		cond, args := ofApps("app", f.Apps)
		left = append(left, condition{cond, args})
	}
	all := &legs[auditEntry]{reader: db.Reader(ctx), what: "list audit", columns: auditColumns,
		less: func(a, b auditEntry) bool { return a.At > b.At || a.At == b.At && a.ID > b.ID },
		scan: func(rows *stdsql.Rows, e *auditEntry, i *int) error {
			e.fits = true
			return scanAudit(rows, &e.Entry, i)
		}}
	for _, one := range ways[way].each {
		all.all = append(all.all, auditLeg(ways[way].index, one, &f))
	}
	if left != nil {
		fits := allOf(left)
		all.columns, all.columnArgs = "id, at, "+fits.sql, fits.args
		all.scan = func(rows *stdsql.Rows, e *auditEntry, i *int) error { return rows.Scan(i, &e.ID, &e.At, &e.fits) }
	}
	found, next, err := search(all, f.Limit, func(e auditEntry) bool { return e.fits })
	if err != nil {
		return AuditPage{}, err
	}
	var p AuditPage
	if next != nil {
		p.Next = next.place()
	}
	for _, e := range found {
		p.Lines = append(p.Lines, e.Entry)
	}
	if left != nil {
		p.Lines, err = db.auditByID(ctx, p.Lines)
	}
	return p, err
}

func auditLeg(index string, one condition, f *AuditFilter) *leg[auditEntry] {
	where, args := one.sql, slices.Clone(one.args)
	if f.From != 0 {
		where, args = where+" AND at >= ?", append(args, int64(f.From))
	}
	if f.To != 0 {
		where, args = where+" AND at < ?", append(args, int64(f.To))
	}
	after := func(at job.Micros, id int64) (string, []any) {
		return "at <= ? AND (at < ? OR id < ?)", []any{int64(at), int64(at), id}
	}
	if f.After != nil {
		cond, more := after(f.After.Due, f.After.ID)
		where, args = where+" AND "+cond, append(args, more...)
	}
	return &leg[auditEntry]{from: "audit FORCE INDEX (" + index + ")", where: where, args: args, by: "at DESC, id DESC",
		after: func(e auditEntry) (string, []any) { return after(e.At, e.ID) }}
}

// auditByID reads the lines whose places are given, in that order.
func (db *DB) auditByID(ctx context.Context, places []job.Entry) ([]job.Entry, error) {
	if len(places) == 0 {
		return nil, nil
	}
	ids := make([]int64, len(places))
	for i := range places {
		ids[i] = places[i].ID
	}
	list, args := In(nil, ids)
	var out []job.Entry
	err := db.query(ctx, "read audit", auditRows(&out), "SELECT "+auditColumns+" FROM audit FORCE INDEX (PRIMARY) WHERE id IN "+list, args...)
	slices.SortFunc(out, func(a, b job.Entry) int { return slices.Index(ids, a.ID) - slices.Index(ids, b.ID) })
	return out, err
}

// oneEach is a condition for each value.
func oneEach(cond string, values []string) []condition {
	var out []condition
	for _, v := range values {
		out = append(out, condition{cond, []any{v}})
	}
	return out
}

func anyOf(list []condition) condition { return joined(list, " OR ", "FALSE") }
func allOf(list []condition) condition { return joined(list, " AND ", "TRUE") }

func joined(list []condition, word, none string) condition {
	var parts []string
	var args []any
	for _, c := range list {
		parts, args = append(parts, "("+c.sql+")"), append(args, c.args...)
	}
	if parts == nil {
		return condition{none, nil}
	}
	return condition{"(" + strings.Join(parts, word) + ")", args}
}

// lineColumns leave the definitions out.
const lineColumns = "id, at, who, origin, action, kind, ref, app, name, reason, '', ''"

// LinesAfter lists lines of the audit by id, those that come behind one, without definitions.
func (db *DB) LinesAfter(ctx context.Context, after int64, limit int) ([]job.Entry, error) {
	return db.lines(ctx, "id > ? ORDER BY id LIMIT ?", after, limit)
}

// LinesIn lists the lines of the audit that there are in spans of ids, without definitions.
func (db *DB) LinesIn(ctx context.Context, spans []Span) ([]job.Entry, error) {
	cond, args := Within(spans)
	return db.lines(ctx, cond+" ORDER BY id", args...)
}

func (db *DB) lines(ctx context.Context, cond string, args ...any) ([]job.Entry, error) {
	var out []job.Entry
	err := db.query(ctx, "read audit", auditRows(&out), "SELECT "+lineColumns+" FROM audit FORCE INDEX (PRIMARY) WHERE "+cond, args...)
	return out, err
}
