package sql

import "strings"

// Cut shortens s to at most n runes, the last of which then is an ellipsis.
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
