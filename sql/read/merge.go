package read

import (
	"strconv"
	"strings"

	"go-crontab/sql"
)

// A list is read from an index that has the rows of the list in order. The rows may lie in several
// ranges of the index: for example, one range for each app that a person may see. Then the ranges
// are merged.

const (
	// examinedMost bounds how many entries are read for one page. If each condition matches many
	// rows, but few rows match all conditions, a page is shorter than its limit. The next page
	// continues from there.
	examinedMost = 2000
	// readMost bounds how many entries of a range one statement reads.
	readMost = 500
	// idsAtOnce bounds the numbers in one IN list. MariaDB turns a list of 1,000 numbers into a
	// subquery.
	idsAtOnce = 800
)

// indexRange is a range of an index.
type indexRange[E any] struct {
	query func(after *E, limit int) (string, []any)

	last  *E  // the last entry read; initially the start of the page
	ahead []E // read but not taken
	ask   int // entries to read with the next statement
	over  bool
}

// merge reads the ranges of a list in the order of the list. E is an index entry.
type merge[E any] struct {
	reader sql.Reader
	what   string // names the statement in errors
	scan   func(*sql.Rows) (E, error)
	less   func(a, b *E) bool
	fits   func(*E) bool // checks the conditions that the ranges do not guarantee
	all    []*indexRange[E]

	examined int
}

// page returns up to limit entries that fit. next is the position at which the list continues, or
// nil at the end of the list.
func (l *merge[E]) page(limit int) (found []E, next *E, err error) {
	for _, g := range l.all {
		g.ask = limit/len(l.all) + 2
	}

	for l.examined < examinedMost {
		e, err := l.next()
		if err != nil || e == nil {
			return found, nil, err
		}

		next = e
		if !l.fits(e) {
			continue
		}
		if len(found) == limit {
			return found, &found[limit-1], nil
		}

		found = append(found, *e)
	}

	return found, next, nil
}

// next takes the first entry of all ranges. If there are no more, it returns nil.
func (l *merge[E]) next() (*E, error) {
	var first *indexRange[E]
	for _, g := range l.all {
		if err := l.fill(g); err != nil {
			return nil, err
		}
		if len(g.ahead) > 0 && (first == nil || l.less(&g.ahead[0], &first.ahead[0])) {
			first = g
		}
	}

	if first == nil {
		return nil, nil
	}

	e := &first.ahead[0]
	first.ahead = first.ahead[1:]
	l.examined++
	return e, nil
}

// fill reads the next entries of a range when all entries read before are used up. Each statement
// reads more than the statement before.
func (l *merge[E]) fill(g *indexRange[E]) error {
	if len(g.ahead) > 0 || g.over {
		return nil
	}

	query, args := g.query(g.last, g.ask)
	entries, err := sql.Select(l.reader, l.what, l.scan, query, args...)
	if err != nil {
		return err
	}

	g.over = len(entries) < g.ask
	g.ahead, g.ask = entries, min(2*g.ask, readMost)
	if n := len(entries); n > 0 {
		last := entries[n-1]
		g.last = &last
	}

	return nil
}

// list returns numbers as an SQL list in parentheses.
func list[T ~int64 | ~int32](numbers []T) string {
	b := []byte{'('}
	for _, n := range numbers {
		b = append(strconv.AppendInt(b, int64(n), 10), ',')
	}
	b[len(b)-1] = ')'
	return string(b)
}

// places returns n placeholders in parentheses.
func places(n int) string { return "(?" + strings.Repeat(", ?", n-1) + ")" }

// texts converts strings to arguments of a statement.
func texts(values []string) []any {
	out := make([]any, len(values))
	for i, v := range values {
		out[i] = v
	}
	return out
}

// all joins conditions with AND.
func all(conditions []Condition) (text string, args []any) {
	text = "TRUE"
	for _, c := range conditions {
		text += " AND " + c.SQL
		args = append(args, c.Args...)
	}
	return text, args
}

func scanID(rows *sql.Rows) (id int64, err error) {
	err = rows.Scan(&id)
	return id, err
}

func scanText(rows *sql.Rows) (s string, err error) {
	err = rows.Scan(&s)
	return s, err
}
