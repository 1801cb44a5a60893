package sql

import "strings"

// Cut shortens s to at most n runes. An ellipsis replaces the rest.
func Cut(s string, n int) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) <= n {
		return s
	}
	r := []rune(s)
	if len(r) <= n {
		return s
	}
	return string(r[:n-1]) + "…"
}

// Span is a range of ids, including both ends.
type Span struct{ From, To int64 }

// Within returns the SQL condition that an id is in one of the spans, with its arguments.
func Within(spans []Span) (string, []any) {
	args := make([]any, 0, 2*len(spans))
	for _, s := range spans {
		args = append(args, s.From, s.To)
	}
	return "(id BETWEEN ? AND ?" + strings.Repeat(" OR id BETWEEN ? AND ?", len(spans)-1) + ")", args
}
