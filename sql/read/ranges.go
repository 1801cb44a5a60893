package read

import (
	"slices"
	"strconv"
	"strings"

	"go-crontab/job"
	"go-crontab/sql"
)

// A list that is filtered is read from an index in which what it wants stands together and in the
// list's order. Where several ranges of an index hold it (all outcomes of an app's runs, each a
// range of its own), one statement reads a few entries of each at a time, and more of those that
// turn out to have more to say, so that little is read which is not shown. Those of legs.go are
// read one by one.

// ManyApps is from how many apps on the list does not read each of them by itself.
const ManyApps = 16

// Range is one range of an index.
type Range[R any] struct {
	// The parts of its statement: the index, a condition on it, and the order.
	From  string
	Where Condition
	By    string
	After func(R) Condition // for what comes behind an entry
	Last  *R                // the last that was read; at first where the page begins

	ahead []R // read, and not taken
	asked int // how many are being read
	taken int
	over  bool
}

// Ranges are the ranges of which a list is made. R is an entry.
type Ranges[R any] struct {
	Reader  sql.Reader
	What    string // is read, for errors
	Columns Condition
	Scan    func(*sql.Rows, *R, *int) error // also of the range's number, which is the first column
	Less    func(a, b R) bool
	All     []*Range[R]

	taken int
}

// atFirst is how many entries are read of each of several ranges before it is known which of them
// has most.
const atFirst = 3

// take returns the next entries of all ranges, at most n; fewer mean that there are no more.
func (l *Ranges[R]) take(n int) ([]R, error) {
	out := make([]R, 0, n)
	for len(out) < n {
		if err := l.fill(n - len(out)); err != nil {
			return nil, err
		}

		var first *Range[R]
		for _, g := range l.All {
			if len(g.ahead) > 0 && (first == nil || l.Less(g.ahead[0], first.ahead[0])) {
				first = g
			}
		}

		if first == nil {
			break
		}

		out = append(out, first.ahead[0])
		first.ahead = first.ahead[1:]
		first.taken++
		l.taken++
	}

	return out, nil
}

// fill sees to it that the next entry of each range that has one is known. n more are wanted of
// all.
func (l *Ranges[R]) fill(n int) error {
	var empty []int
	for i, g := range l.All {
		if len(g.ahead) == 0 && !g.over {
			empty = append(empty, i)
		}
	}

	if len(empty) == 0 {
		return nil
	}

	var parts []string
	var args []any
	for _, i := range empty {
		g := l.All[i]
		g.asked = l.share(g, n)
		part, more := g.statement(i, l.Columns.SQL)
		parts, args = append(parts, part), append(append(args, l.Columns.Args...), more...)
	}

	query := parts[0]
	if len(parts) > 1 {
		query = "(" + strings.Join(parts, ") UNION ALL (") + ")"
	}

	got := make([]int, len(l.All))
	err := sql.Each(l.Reader, l.What, func(rows *sql.Rows) error {
		var r R
		var i int
		if err := l.Scan(rows, &r, &i); err != nil {
			return err
		}
		g := l.All[i]
		g.ahead = append(g.ahead, r)
		got[i]++
		return nil
	}, query, args...)
	if err != nil {
		return err
	}

	for _, i := range empty {
		g := l.All[i]
		g.over = got[i] < g.asked
		if got[i] > 0 {
			last := g.ahead[got[i]-1]
			g.Last = &last
		}
	}

	return nil
}

// share is how many entries of a range are to be read when n more are wanted of all: as many as it
// would give if it went on as it began.
func (l *Ranges[R]) share(g *Range[R], n int) int {
	switch {
	case len(l.All) == 1:
		return n
	case l.taken == 0:
		return min(n, atFirst)
	}
	return min(n, max(atFirst, (n*g.taken+l.taken-1)/l.taken))
}

func (g *Range[R]) statement(i int, columns string) (string, []any) {
	where, args := g.Where.SQL, slices.Clone(g.Where.Args)
	if g.Last != nil {
		behind := g.After(*g.Last)
		where, args = where+" AND ("+behind.SQL+")", append(args, behind.Args...)
	}

	return `
		SELECT ` + strconv.Itoa(i) + `, ` + columns + `
		FROM ` + g.From + `
		WHERE ` + where + `
		ORDER BY ` + g.By + `
		LIMIT ?`, append(args, g.asked)
}

// Search looks at entries in their order until it has found so many that fit, or has looked at too
// many. It returns where to go on, nil at the end.
func Search[R any](all *Ranges[R], limit int, fits func(R) bool) (found []R, next *R, err error) {
	for chunk := limit + 1; ; {
		entries, err := all.take(chunk)
		if err != nil {
			return nil, nil, err
		}

		for i, e := range entries {
			if !fits(e) {
				continue
			}
			if len(found) == limit {
				return found, &found[limit-1], nil
			}
			found = append(found, entries[i])
		}

		switch {
		case len(entries) < chunk:
			return found, nil, nil
		case all.taken >= examinedMost:
			return found, &entries[len(entries)-1], nil
		case len(found) == 0:
			chunk *= 2
		default: // as many as it takes if they go on as they began, and some more
			chunk = max(8, (limit+1-len(found))*all.taken/len(found)*5/4)
		}

		chunk = min(chunk, max(8, examinedMost-all.taken))
	}
}

// ListPlace is a place in a list.
type ListPlace struct {
	ID  int64
	Due job.Micros // what the list is ordered by before the id
}

// Condition is a piece of SQL with its arguments.
type Condition struct {
	SQL  string
	Args []any
}

// Where is a condition.
func Where(text string, args ...any) Condition { return Condition{text, args} }

// OneEach is a condition for each value.
func OneEach(cond string, values []string) []Condition {
	var out []Condition
	for _, v := range values {
		out = append(out, Where(cond, v))
	}
	return out
}

// AnyOf holds where one of some conditions does.
func AnyOf(list []Condition) Condition { return joined(list, " OR ", "FALSE") }

// AllOf holds where all of some conditions do.
func AllOf(list []Condition) Condition { return joined(list, " AND ", "TRUE") }

func joined(list []Condition, word, none string) Condition {
	var parts []string
	var args []any
	for _, c := range list {
		parts, args = append(parts, "("+c.SQL+")"), append(args, c.Args...)
	}
	if parts == nil {
		return Where(none)
	}
	return Condition{"(" + strings.Join(parts, word) + ")", args}
}
