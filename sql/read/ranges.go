package read

import (
	"slices"
	"strconv"
	"strings"

	"go-crontab/job"
	"go-crontab/sql"
)

// A filtered list is read from an index that has the rows of the list in order. The rows may lie in
// several ranges of the index: for example, one range for each outcome of an app's runs. The first
// statement reads a few entries of all ranges. Later statements read more entries from ranges that
// have given more entries. So few entries are read in vain. In merge.go, by contrast, each
// statement reads one range.

// ManyApps is the most apps that a list reads as separate ranges.
const ManyApps = 16

// Range is a range of an index.
type Range[R any] struct {
	From  string            // the index
	Where Condition         // a condition on it
	By    string            // the order
	After func(R) Condition // the condition for entries after the given one
	Last  *R                // the last entry read; initially the start of the page

	ahead []R // read but not taken
	asked int // entries being read
	taken int
	over  bool
}

// Ranges are the ranges of a list. R is an entry.
type Ranges[R any] struct {
	Reader  sql.Reader
	What    string // names the statement in errors
	Columns Condition
	Scan    func(*sql.Rows, *R, *int) error // also reads the number of the range, which is the first column
	Less    func(a, b R) bool
	All     []*Range[R]

	taken int
}

// atFirst is how many entries of each range the first statement reads, if there are several ranges.
const atFirst = 3

// take returns the next n entries of all ranges. If it returns fewer, there are no more.
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

// fill makes sure that the next entry of each unfinished range is known. n is the number of entries
// that are still wanted.
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

// share returns how many entries to read from a range when n more are wanted in total. A range from
// which more entries were taken before has a larger share.
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
		position := g.After(*g.Last)
		where, args = where+" AND ("+position.SQL+")", append(args, position.Args...)
	}

	return `
		SELECT ` + strconv.Itoa(i) + `, ` + columns + `
		FROM ` + g.From + `
		WHERE ` + where + `
		ORDER BY ` + g.By + `
		LIMIT ?`, append(args, g.asked)
}

// Search reads entries in order until it has found limit entries that fit, or has read too many. It
// returns the position at which to continue. At the end it returns nil.
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
		// Estimate from the entries so far how many must be read until enough fit. Read that many
		// and some more.
		default:
			chunk = max(8, (limit+1-len(found))*all.taken/len(found)*5/4)
		}

		chunk = min(chunk, max(8, examinedMost-all.taken))
	}
}

// ListPlace is a position in a list.
type ListPlace struct {
	ID  int64
	Due job.Micros // the sort key before the id
}

// Condition is an SQL condition with its arguments.
type Condition struct {
	SQL  string
	Args []any
}

// Where returns a condition.
func Where(text string, args ...any) Condition { return Condition{text, args} }

// OneEach returns one condition per value.
func OneEach(cond string, values []string) []Condition {
	var out []Condition
	for _, v := range values {
		out = append(out, Where(cond, v))
	}
	return out
}

// AnyOf returns the condition that any condition in list is met.
func AnyOf(list []Condition) Condition { return joined(list, " OR ", "FALSE") }

// AllOf returns the condition that all conditions in list are met.
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
