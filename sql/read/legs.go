package read

import (
	"strconv"
	"strings"

	"go-crontab/sql"
)

// A list is read from an index in which the wanted rows stand together and in the order of the
// list. Where several ranges of an index hold them (each app of a person who sees three, say), the
// ranges are merged.

const (
	// examinedMost bounds how many entries one page looks at without showing them: if conditions
	// hold of many rows each, and of few together, a page is shorter than it may be, and the next
	// one goes on.
	examinedMost = 2000
	// readMost bounds how many entries of a range one statement reads.
	readMost = 500
	// idsAtOnce bounds the numbers in one list of a statement. MariaDB makes a subquery of a list
	// with 1,000 numbers.
	idsAtOnce = 800
)

// leg is one range of an index.
type leg[E any] struct {
	query func(after *E, limit int) (string, []any)

	last  *E  // the last entry that was read; at first where the page begins
	ahead []E // read and not taken yet
	ask   int // how many entries the next statement reads
	over  bool
}

// legs are the ranges that make up a list. E is an entry of an index.
type legs[E any] struct {
	reader sql.Reader
	what   string // is read, for errors
	scan   func(*sql.Rows) (E, error)
	less   func(a, b *E) bool
	fits   func(*E) bool // the conditions that do not hold of the whole range
	all    []*leg[E]

	examined int
}

// page looks for entries that fit, at most limit of them. It returns where the list goes on, nil at
// its end.
func (l *legs[E]) page(limit int) (found []E, next *E, err error) {
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

// next takes the first entry of all ranges, nil when there is no more.
func (l *legs[E]) next() (*E, error) {
	var first *leg[E]
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

// fill reads the next entries of a range once the last ones are used up. Each statement reads more
// than the previous one.
func (l *legs[E]) fill(g *leg[E]) error {
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

// list writes whole numbers as a list in parentheses.
func list[T ~int64 | ~int32](numbers []T) string {
	b := []byte{'('}
	for _, n := range numbers {
		b = append(strconv.AppendInt(b, int64(n), 10), ',')
	}
	b[len(b)-1] = ')'
	return string(b)
}

// places writes a list of placeholders in parentheses.
func places(n int) string { return "(?" + strings.Repeat(", ?", n-1) + ")" }

// texts are strings as arguments of a statement.
func texts(values []string) []any {
	out := make([]any, len(values))
	for i, v := range values {
		out[i] = v
	}
	return out
}

// all joins conditions.
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
