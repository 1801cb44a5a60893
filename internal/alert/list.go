package alert

import (
	"slices"
	"strings"

	"go-crontab/job"
	"go-crontab/sql"
	"go-crontab/sql/read"
)

// openOrOfApp selects the alerts that belong to an app, or are open to readers of any app.
var openOrOfApp = func() read.Condition {
	list, args := sql.In(nil, closed)
	return read.Where("app <> '' OR event NOT IN "+list, args...)
}()

// FiredFilter says which alerts to list. Zero fields do not restrict.
type FiredFilter struct {
	App    string
	Apps   []string // only alerts of these apps, and open ones; nil: all
	JobID  int64
	Rule   string
	Firing *bool
	Before int64 // only smaller ids; 0: all
	Limit  int
}

// plan is an index from which a list of alerts or messages can be read.
type plan struct {
	index string
	by    string           // the column that orders the list before the id, latest first; "": the id alone
	given bool             // the filter restricts the columns of the index
	each  []read.Condition // the ranges of the index, one for each condition
}

// place is the place of a row in the list of a plan. Due holds the value of plan.by.
type place struct {
	read.ListPlace
	fits bool
}

// Fired lists alerts, latest first. If few rows match, a page may end before it is full. next is
// the FiredFilter.Before of the next page; zero: there is none.
func Fired(r sql.Reader, f FiredFilter) (out []FiredRow, next int64, err error) {
	if f.App != "" && f.Apps != nil && !slices.Contains(f.Apps, f.App) {
		return nil, 0, nil
	}

	// Pick the index, the most selective one first.
	fires, over := f.Firing != nil && *f.Firing, f.Firing != nil && !*f.Firing
	ways := []plan{
		{"job", "", f.JobID != 0, []read.Condition{read.Where("job_id = ?", f.JobID)}},
		{"firing", "", fires, []read.Condition{read.Where("firing = 1")}},
		{"app", "", f.App != "", []read.Condition{read.Where("app = ?", f.App)}},
		{
			"app", "", f.Apps != nil && len(f.Apps) <= read.ManyApps,
			read.OneEach("app = ?", append([]string{""}, f.Apps...)),
		},
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

// planOf picks the first plan that the filter restricts. If there is none, it picks the plan by
// id. left holds the conditions of the later plans. Each row must be checked against these.
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

// places returns the ids on a page of a list. next is the place where the next page continues;
// nil: there is none. places reads rows until the page is full, or until it has read too many and
// leaves the rest to the next page.
func places(
	r sql.Reader, table string, way plan, left []read.Condition, after *read.ListPlace, limit int,
) (ids []int64, next *read.ListPlace, err error) {
	at, order := "0", "id DESC"
	if way.by != "" {
		at, order = way.by, way.by+" DESC, id DESC"
	}

	fits := read.AllOf(left)
	all := &read.Ranges[place]{
		Reader:  r,
		What:    "list " + table,
		Columns: read.Where("id, "+at+", COALESCE("+fits.SQL+", FALSE)", fits.Args...),
		Less:    func(a, b place) bool { return a.Due > b.Due || a.Due == b.Due && a.ID > b.ID },
		Scan:    func(rows *sql.Rows, e *place, i *int) error { return rows.Scan(i, &e.ID, &e.Due, &e.fits) },
	}
	for _, one := range way.each {
		g := &read.Range[place]{
			From:  table + " FORCE INDEX (" + way.index + ")",
			Where: one,
			By:    order,
			After: func(e place) read.Condition {
				if way.by == "" {
					return read.Where("id < ?", e.ID)
				}
				return read.Where(at+" <= ? AND ("+at+" < ? OR id < ?)", int64(e.Due), int64(e.Due), e.ID)
			},
		}
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
	After   *read.ListPlace // only messages after this place of the list
	Limit   int
}

// Deliveries lists messages, latest first: by their creation, or, if the filter has a state, by
// when they entered that state. If few rows match, a page may end before it is full. next is the
// place where the next page continues; nil: there is none.
//
// Most messages are pings, which have neither a channel nor a rule, and most are sent.
func Deliveries(r sql.Reader, f DeliveryFilter) (out []DeliveryRow, next *read.ListPlace, err error) {
	// Pick the index. Most messages are sent, so a kind selects fewer rows than the state "sent".
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
	out, err = sql.Select(r, "read deliveries", scanDelivery, `SELECT `+deliveryColumns+`
		FROM delivery FORCE INDEX (PRIMARY)
		WHERE id IN `+list,
		args...)
	slices.SortFunc(out, func(a, b DeliveryRow) int {
		return slices.Index(ids, a.ID) - slices.Index(ids, b.ID)
	})
	return out, next, err
}

// Counts holds figures about all alerts.
type Counts struct {
	Firing    int64
	States    map[string]int64 // messages in each state, each up to countedMost
	Lost      int64            // events beyond the limits, which were not reported
	Templates int64            // templates that failed
}

// countedMost bounds the messages counted in one state.
const countedMost = 10_000

// Count reads the counts. If apps is nil, the reader may see all apps. Other readers may see no
// messages. For them Count counts only the firing alerts that Fired lists.
func Count(r sql.Reader, apps []string) (Counts, error) {
	c := Counts{States: map[string]int64{}}
	if apps != nil {
		list, args := sql.In(nil, append([]string{""}, apps...))
		visible := read.AllOf([]read.Condition{read.Where("app IN "+list, args...), openOrOfApp})
		err := sql.Each(r, "count alerts of apps", func(rows *sql.Rows) error { return rows.Scan(&c.Firing) },
			`SELECT COUNT(*)
			FROM alert FORCE INDEX (firing)
			WHERE firing = 1 AND `+visible.SQL,
			visible.Args...)
		return c, err
	}

	err := sql.Each(r, "count alerts",
		func(rows *sql.Rows) error { return rows.Scan(&c.Firing, &c.Lost, &c.Templates) },
		`SELECT (SELECT COUNT(*) FROM alert WHERE firing = 1), lost, template_failures
		FROM alert_work
		WHERE id = 1`)
	if err != nil {
		return c, err
	}

	parts, args := make([]string, len(DeliveryStates)), []any(nil)
	for state := range DeliveryStates {
		parts[state] = "(SELECT state FROM delivery FORCE INDEX (due) WHERE state = ? LIMIT ?)"
		args = append(args, state, countedMost)
	}
	err = sql.Each(r, "count deliveries", func(rows *sql.Rows) error {
		var (
			state DeliveryState
			n     int64
		)
		err := rows.Scan(&state, &n)
		c.States[state.String()] = n
		return err
	}, `SELECT state, COUNT(*)
		FROM (`+strings.Join(parts, " UNION ALL ")+`) d
		GROUP BY state`,
		args...)
	return c, err
}

// CountFiring counts the firing alerts that Fired lists for some apps; nil: all.
func CountFiring(r sql.Reader, apps []string) (n int64, err error) {
	where := read.Where("TRUE")
	if apps != nil {
		list, args := sql.In(nil, append([]string{""}, apps...))
		where = read.AllOf([]read.Condition{read.Where("app IN "+list, args...), openOrOfApp})
	}

	err = sql.Each(r, "count firing alerts", func(rows *sql.Rows) error { return rows.Scan(&n) },
		`SELECT COUNT(*)
		FROM alert FORCE INDEX (firing)
		WHERE firing = 1 AND `+where.SQL, where.Args...)
	return n, err
}

// CountUnsent counts two kinds of messages: those that failed and are tried again, and those that
// were given up at or after since. It counts each kind up to countedMost.
func CountUnsent(r sql.Reader, since job.Micros) (n int64, err error) {
	const query = `
		SELECT
			(SELECT COUNT(*) FROM (
				SELECT 1 FROM delivery FORCE INDEX (due) WHERE state IN (?, ?) AND attempts > 0 AND said <> '' LIMIT ?) a) +
			(SELECT COUNT(*) FROM (
				SELECT 1 FROM delivery FORCE INDEX (due) WHERE state = ? AND updated >= ? LIMIT ?) b)`
	err = sql.Each(r, "count unsent messages", func(rows *sql.Rows) error { return rows.Scan(&n) }, query,
		DeliveryPending, DeliverySending, countedMost, DeliveryFailed, int64(since), countedMost)
	return n, err
}
