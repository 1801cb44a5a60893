package trip

import (
	"encoding/json"
	"iter"
	"strconv"

	"go-crontab/job"
	"go-crontab/sql"
)

// list writes whole numbers as a list in parentheses.
func list[T ~int64 | ~int32](values iter.Seq[T]) string {
	b := []byte{'('}
	for v := range values {
		b = append(strconv.AppendInt(b, int64(v), 10), ',')
	}
	b[len(b)-1] = ')'
	return string(b)
}

// each writes a list with one number for each element.
func each[E any, T ~int64 | ~int32](elements []E, number func(*E) T) string {
	return list(func(yield func(T) bool) {
		for i := range elements {
			if !yield(number(&elements[i])) {
				return
			}
		}
	})
}

// rows writes rows for JSON_TABLE, or for VALUES, cell by cell.
type rows struct {
	b          []byte
	open, shut byte
}

// jsonRows begins rows for JSON_TABLE.
func jsonRows(n int) *rows { return &rows{make([]byte, 0, 48*n), '[', ']'} }

// valueRows begins rows for VALUES.
func valueRows(n int) *rows { return &rows{make([]byte, 0, 96*n), '(', ')'} }

func (r *rows) begin() {
	if len(r.b) > 0 {
		r.b = append(r.b, ',')
	}
	r.b = append(r.b, r.open)
}

func (r *rows) end() { r.b[len(r.b)-1] = r.shut }

func (r *rows) number(n int64) { r.b = append(strconv.AppendInt(r.b, n, 10), ',') }
func (r *rows) word(s string)  { r.b = append(append(r.b, s...), ',') }
func (r *rows) null()          { r.b = append(r.b, "null,"...) }

// numberOrNull writes a number, or null for zero.
func (r *rows) numberOrNull(n int64) {
	if n == 0 {
		r.null()
		return
	}
	r.number(n)
}

// text writes a string for JSON_TABLE, or null for an empty string.
func (r *rows) text(s string) {
	if s == "" {
		r.null()
		return
	}
	quoted, _ := json.Marshal(s) // it cannot fail for a string
	r.b = append(append(r.b, quoted...), ',')
}

// reason writes the two cells of a reason for JSON_TABLE.
func (r *rows) reason(why job.Reason) {
	code := string(why.Code)
	r.text(code[:min(len(code), 32)]) // MySQL's JSON_TABLE turns a text that is too long into NULL
	r.text(sql.Cut(why.Text, 512))
}

func (r *rows) json() string   { return "[" + string(r.b) + "]" }
func (r *rows) values() string { return string(r.b) }

func scanID(rows *sql.Rows) (id int64, err error) {
	err = rows.Scan(&id)
	return id, err
}
