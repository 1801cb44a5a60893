package sql

import (
	stdsql "database/sql"
	"go-crontab/job"
	"slices"
	"strconv"
	"strings"
)

// A list that is filtered is read from an index in which what it wants stands together and in the list's order: a leg.
// Where several ranges of an index hold it (all outcomes of an app's runs, each a range of its own), the legs are merged:
// a few entries of each are read at a time, and more of those that turn out to have more to say, so that little is read
// which is not shown.

// leg is one range of an index.
type leg[R any] struct {
	// The parts of its statement: the index, a condition on it, and the order.
	from, where, by string
	args            []any
	// What is joined to each entry, and a condition on that.
	join, cond string
	condArgs   []any
	// after is the condition for what comes behind an entry.
	after func(R) (string, []any)

	ahead []R // read, and not taken
	last  *R  // the last that was read
	asked int // how many are being read
	taken int
	over  bool
}

// legs are the ranges of which a list is made. R is an entry.
type legs[R any] struct {
	reader     Reader
	what       string // is read, for errors
	columns    string
	columnArgs []any
	scan       func(*stdsql.Rows, *R, *int) error // also of the leg's number, which is the first column
	less       func(a, b R) bool
	all        []*leg[R]

	read  int // entries that were read
	taken int
}

// atFirst is how many entries are read of each of several legs before it is known which of them has most.
const atFirst = 3

// take returns the next entries of all legs, at most n; fewer mean that there are no more.
func (l *legs[R]) take(n int) ([]R, error) {
	out := make([]R, 0, n)
	for len(out) < n {
		if err := l.fill(n - len(out)); err != nil {
			return nil, err
		}
		var first *leg[R]
		for _, g := range l.all {
			if len(g.ahead) > 0 && (first == nil || l.less(g.ahead[0], first.ahead[0])) {
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

// fill sees to it that the next entry of each leg that has one is known. n more are wanted of all.
func (l *legs[R]) fill(n int) error {
	var empty []int
	for i, g := range l.all {
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
		g := l.all[i]
		g.asked = l.share(g, n)
		part, more := g.statement(i, l.columns)
		parts, args = append(parts, part), append(append(args, l.columnArgs...), more...)
	}
	query := parts[0]
	if len(parts) > 1 {
		query = "(" + strings.Join(parts, ") UNION ALL (") + ")"
	}
	got := make([]int, len(l.all))
	err := Each(l.reader, l.what, func(rows *stdsql.Rows) error {
		var r R
		var i int
		if err := l.scan(rows, &r, &i); err != nil {
			return err
		}
		g := l.all[i]
		g.ahead = append(g.ahead, r)
		got[i]++
		return nil
	}, query, args...)
	if err != nil {
		return err
	}
	for _, i := range empty {
		g := l.all[i]
		g.over = got[i] < g.asked
		l.read += got[i]
		if got[i] > 0 {
			last := g.ahead[got[i]-1]
			g.last = &last
		}
	}
	return nil
}

// share is how many entries of a leg are to be read when n more are wanted of all: as many as it would give if it went on
// as it began.
func (l *legs[R]) share(g *leg[R], n int) int {
	switch {
	case len(l.all) == 1:
		return n
	case l.taken == 0:
		return min(n, atFirst)
	}
	return min(n, max(atFirst, (n*g.taken+l.taken-1)/l.taken))
}

func (g *leg[R]) statement(i int, columns string) (string, []any) {
	where, args := g.where, slices.Clone(g.args)
	if g.last != nil {
		cond, more := g.after(*g.last)
		where, args = where+" AND ("+cond+")", append(args, more...)
	}
	if g.cond != "" {
		where, args = where+" AND "+g.cond, append(args, g.condArgs...)
	}
	return "SELECT " + strconv.Itoa(i) + ", " + columns + " FROM " + g.from + " " + g.join + " WHERE " + where + " ORDER BY " + g.by + " LIMIT ?", append(args, g.asked)
}

// search looks at entries in their order until it has found so many that fit, or has looked at too many. It returns where
// to go on, nil at the end.
func search[R any](all *legs[R], limit int, fits func(R) bool) (found []R, next *R, err error) {
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

// condition is a part of a WHERE clause.
type condition struct {
	sql  string
	args []any
}

// Span is a range of ids, both ends included.
type Span struct{ From, To int64 }

// Within writes the condition that an id is in one of some spans.
func Within(spans []Span) (string, []any) {
	args := make([]any, 0, 2*len(spans))
	for _, s := range spans {
		args = append(args, s.From, s.To)
	}
	return "(id BETWEEN ? AND ?" + strings.Repeat(" OR id BETWEEN ? AND ?", len(spans)-1) + ")", args
}

// examinedMost bounds how many entries one page looks at without showing them: if conditions hold of many rows each, and of few
// together, a page is shorter than it may be, and the next one goes on.
const examinedMost = 2000
