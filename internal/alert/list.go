package alert

import (
	"slices"
	"strings"

	"go-crontab/job"
	"go-crontab/sql"
	"go-crontab/sql/read"
)

// openOrOfApp is that of alerts which are of an app as well.
var openOrOfApp = read.Where("app <> '' OR event <> ?", job.AlertFailures)

// FiredFilter says which alerts to list. Zero fields do not restrict.
type FiredFilter struct {
	App    string
	Apps   []string // only of these apps, and what is open; nil: all
	JobID  int64
	Rule   string
	Firing *bool
	Before int64 // only ids before it
	Limit  int
}

// plan is an index to read a list of alerts or of messages from.
type plan struct {
	index string
	by    string           // what the list is ordered by before the id, the latest first; "": by the id alone
	given bool             // the filter has what it is by
	each  []read.Condition // a range for each
}

// place is a place in such a list. Due is what the list is ordered by before the id.
type place struct {
	read.ListPlace
	fits bool
}

// Fired lists alerts, the latest first. A page that meets few that fit ends before it is full; next is where it goes on,
// zero at the end.
func Fired(r sql.Reader, f FiredFilter) (out []FiredRow, next int64, err error) {
	if f.App != "" && f.Apps != nil && !slices.Contains(f.Apps, f.App) {
		return nil, 0, nil
	}
	fires, over := f.Firing != nil && *f.Firing, f.Firing != nil && !*f.Firing
	ways := []plan{
		{"job", "", f.JobID != 0, []read.Condition{read.Where("job_id = ?", f.JobID)}},
		{"firing", "", fires, []read.Condition{read.Where("firing = 1")}},
		{"app", "", f.App != "", []read.Condition{read.Where("app = ?", f.App)}},
		{"app", "", f.Apps != nil && len(f.Apps) <= read.ManyApps, read.OneEach("app = ?", append([]string{""}, f.Apps...))},
		{"firing", "", over, []read.Condition{read.Where("firing IS NULL")}},
	}
	way, left := planOf(ways)
	if f.Apps != nil {
		left = append(left, openOrOfApp)
	}
	if len(f.Apps) > read.ManyApps {
		list, args := sql.In(nil, append([]string{""}, f.Apps...))
		left = append(left, read.Where("app IN "+list, args...))
	}
	if f.Rule != "" {
		left = append(left, read.Where("rule = ?", f.Rule))
	}
	var after *read.ListPlace
	if f.Before != 0 {
		after = &read.ListPlace{ID: f.Before}
	}
	ids, last, err := places(r, "alert", way, left, after, f.Limit)
	if err != nil {
		return nil, 0, err
	}
	if last != nil {
		next = last.ID
	}
	out, err = FiredByIDs(r, ids)
	slices.Reverse(out)
	return out, next, err
}

// planOf picks the first way that is given, or else the order of the ids, and returns what the ways behind it leave to be
// looked at.
func planOf(ways []plan) (way plan, left []read.Condition) {
	way = plan{index: "PRIMARY", each: []read.Condition{read.Where("TRUE")}}
	at := slices.IndexFunc(ways, func(w plan) bool { return w.given })
	if at < 0 {
		return way, nil
	}
	for _, other := range ways[at+1:] {
		if other.given {
			left = append(left, read.AnyOf(other.each))
		}
	}
	return ways[at], left
}

// places returns the ids of a page of a list, and where it goes on, nil at the end. It looks at what a way leads to
// until the page is full, or at so much that the next page must go on.
func places(r sql.Reader, table string, way plan, left []read.Condition, after *read.ListPlace, limit int) (ids []int64, next *read.ListPlace, err error) {
	at, order := "0", "id DESC"
	if way.by != "" {
		at, order = way.by, way.by+" DESC, id DESC"
	}
	fits := read.AllOf(left)
	all := &read.Ranges[place]{Reader: r, What: "list " + table, Columns: read.Where("id, "+at+", COALESCE("+fits.SQL+", FALSE)", fits.Args...),
		Less: func(a, b place) bool { return a.Due > b.Due || a.Due == b.Due && a.ID > b.ID },
		Scan: func(rows *sql.Rows, e *place, i *int) error { return rows.Scan(i, &e.ID, &e.Due, &e.fits) }}
	for _, one := range way.each {
		g := &read.Range[place]{From: table + " FORCE INDEX (" + way.index + ")", Where: one, By: order,
			After: func(e place) read.Condition {
				if way.by == "" {
					return read.Where("id < ?", e.ID)
				}
				return read.Where(at+" <= ? AND ("+at+" < ? OR id < ?)", int64(e.Due), int64(e.Due), e.ID)
			}}
		if after != nil {
			g.Last = &place{ListPlace: *after}
		}
		all.All = append(all.All, g)
	}
	found, last, err := read.Search(all, limit, func(e place) bool { return e.fits })
	if err != nil {
		return nil, nil, err
	}
	for _, e := range found {
		ids = append(ids, e.ID)
	}
	if last != nil {
		next = &last.ListPlace
	}
	return ids, next, nil
}

// DeliveryFilter says which messages to list. Zero fields do not restrict.
type DeliveryFilter struct {
	Channel string
	Rule    string
	State   *DeliveryState
	After   *read.ListPlace // only what the list has after this place
	Limit   int
}

// Deliveries lists messages, the latest first: by when they were made, or those of a state by when they came into it. A
// page that meets few that fit ends before it is full; next is where it goes on, nil at the end.
//
// Most messages are pings of jobs, which have neither a channel nor a rule, and most are sent.
func Deliveries(r sql.Reader, f DeliveryFilter) (out []DeliveryRow, next *read.ListPlace, err error) {
	var ways []plan
	if f.State != nil {
		ways = []plan{{"due", "next_at", true, []read.Condition{read.Where("state = ?", *f.State)}}}
	}
	kinds := []string{DeliveryOfAlert, DeliveryTest, DeliveryBeat}
	if f.Rule != "" {
		kinds = kinds[:1]
	}
	byKind := plan{"kind", "created", f.Channel != "" || f.Rule != "", read.OneEach("kind = ?", kinds)}
	if f.State != nil && *f.State == DeliverySent {
		ways = append([]plan{byKind}, ways...)
	} else {
		ways = append(ways, byKind)
	}
	way, left := planOf(ways)
	if f.Channel != "" {
		left = append(left, read.Where("channel = ?", f.Channel))
	}
	if f.Rule != "" {
		left = append(left, read.Where("rule = ?", f.Rule))
	}
	ids, next, err := places(r, "delivery", way, left, f.After, f.Limit)
	if err != nil || len(ids) == 0 {
		return nil, next, err
	}
	list, args := sql.In(nil, ids)
	out, err = sql.Select(r, "read deliveries", scanDelivery, "SELECT "+deliveryColumns+" FROM delivery FORCE INDEX (PRIMARY) WHERE id IN "+list, args...)
	slices.SortFunc(out, func(a, b DeliveryRow) int { return slices.Index(ids, a.ID) - slices.Index(ids, b.ID) })
	return out, next, err
}

// Counts is what is known about alerts as a whole.
type Counts struct {
	Firing    int64
	States    map[string]int64 // messages by their states, of each up to CountedMost
	Lost      int64            // what could not be told, because there was too much of it
	Templates int64            // templates that failed
}

// countedMost is up to how many messages of one state are counted.
const countedMost = 10_000

// Count counts.
func Count(r sql.Reader) (Counts, error) {
	c := Counts{States: map[string]int64{}}
	err := sql.Each(r, "count alerts", func(rows *sql.Rows) error { return rows.Scan(&c.Firing, &c.Lost, &c.Templates) },
		"SELECT (SELECT COUNT(*) FROM alert WHERE firing = 1), lost, template_failures FROM alert_work WHERE id = 1")
	if err != nil {
		return c, err
	}
	parts, args := make([]string, len(DeliveryStates)), []any(nil)
	for state := range DeliveryStates {
		parts[state], args = "(SELECT state FROM delivery FORCE INDEX (due) WHERE state = ? LIMIT ?)", append(args, state, countedMost)
	}
	err = sql.Each(r, "count deliveries", func(rows *sql.Rows) error {
		var (
			state DeliveryState
			n     int64
		)
		err := rows.Scan(&state, &n)
		c.States[state.String()] = n
		return err
	}, "SELECT state, COUNT(*) FROM ("+strings.Join(parts, " UNION ALL ")+") d GROUP BY state", args...)
	return c, err
}
