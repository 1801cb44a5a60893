package api

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"go-crontab/job"
	"go-crontab/job/problem"
)

// query reads the query parameters of a request and collects the mistakes in them.
type query struct {
	values   url.Values
	problems job.Problems
}

// withQuery refuses parameters that a route does not take, repeated parameters, and queries that
// cannot be decoded. In a request that changes something it also refuses empty parameters, because
// an empty value may come from an unset shell variable. An ignored filter of a list only shows too
// much. An ignored filter of a change affects too many objects.
func withQuery(takes []parameter, h handler) handler {
	names := make([]string, len(takes))
	for i, p := range takes {
		names[i] = p.self().name
	}

	return func(w http.ResponseWriter, r *http.Request) error {
		if err := checkQuery(r, names); err != nil {
			return err
		}
		return h(w, r)
	}
}

func checkQuery(r *http.Request, takes []string) error {
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return invalidField("query", problem.QueryUndecodable, cutShort(r.URL.RawQuery), err)
	}

	var p job.Problems
	for name, given := range values {
		switch {
		case !slices.Contains(takes, name):
			if near := nearest(name, takes); near != "" {
				p.Add(cutShort(name), problem.UnknownParameterNear, near)
			} else if len(takes) > 0 {
				p.Add(cutShort(name), problem.UnknownParameter.Advise("the known parameters are %s", strings.Join(takes, ", ")))
			} else {
				p.Add(cutShort(name), problem.UnknownParameter)
			}
		case len(given) > 1:
			p.Add(name, problem.GivenTwice)
		case given[0] == "" && r.Method != http.MethodGet && r.Method != http.MethodHead:
			p.Add(name, problem.Empty.Advise("give a value, or leave the parameter out"))
		}
	}

	if p != nil {
		slices.SortFunc(p, func(a, b job.Problem) int { return strings.Compare(a.Field, b.Field) })
		return invalidFields(p)
	}

	return nil
}

func newQuery(r *http.Request) *query { return &query{values: r.URL.Query()} }

func (q *query) wrong(name string, s problem.Sentence, values ...any) {
	q.problems.Add(name, s, values...)
}

// given returns a parameter as sent. An empty parameter counts as absent.
func (q *query) given(name string) string { return q.values.Get(name) }

// text returns a text; "" if absent.
func (q *query) text(p textParam) string {
	v := q.given(p.name)
	if wrong := p.wrong(v); wrong != nil {
		q.problems.Put(p.name, *wrong)
		return ""
	}
	return v
}

// number returns a whole number from 1 to the limit of the parameter.
func (q *query) number(p numberParam) int64 {
	v := q.given(p.name)
	if v == "" {
		return p.otherwise
	}

	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil || n < 1 || n > p.most {
		q.wrong(p.name, problem.NotAWholeNumber, cutShort(v), p.most)
		return p.otherwise
	}

	return n
}

// instant returns a time; the zero time if absent.
func (q *query) instant(p instantParam) time.Time {
	v := q.given(p.name)
	if v == "" {
		if p.needed {
			q.wrong(p.name, problem.Missing.Advise("give a time such as 2027-01-31T03:00:00Z"))
		}
		return time.Time{}
	}

	// A plus sign that was not encoded arrives as a space, and no valid time contains a space.
	t, err := parseInstant(strings.ReplaceAll(v, " ", "+"))
	if err != nil {
		q.wrong(p.name, advised(problem.NotATime, v), cutShort(v))
	}
	return t
}

// between reads a range of times. It refuses an end that is not after the beginning, because such a
// range is empty.
func (q *query) between(begin, end instantParam) (from, to time.Time) {
	from, to = q.instant(begin), q.instant(end)
	if !from.IsZero() && !to.IsZero() && !to.After(from) {
		q.wrong(end.name, problem.NotAfter, to.Format(time.RFC3339Nano), begin.name, from.Format(time.RFC3339Nano))
	}
	return from, to
}

// word returns one of the words of the parameter; "" if absent.
func (q *query) word(p wordParam) string {
	v := q.given(p.name)
	if v != "" && !slices.Contains(p.words, v) {
		s := problem.NotOneOf
		if near := Nearest(v, p.words); near != "" {
			s = s.Advise("did you mean %q?", near)
		}
		q.wrong(p.name, s, cutShort(v), strings.Join(p.words, ", "))
	}
	return v
}

// ids returns ids in the given order; nil if absent.
func (q *query) ids(p idsParam) []int64 {
	v := q.given(p.name)
	if v == "" {
		return nil
	}

	parts := strings.Split(v, ",")
	if len(parts) > p.most {
		q.wrong(p.name, problem.TooManyIDs.Advise("send the rest in another request"),
			len(parts), p.most)
		return nil
	}

	ids, seen := make([]int64, 0, len(parts)), make(map[int64]bool, len(parts))
	for _, part := range parts {
		id, ok := idOf(part)
		switch {
		case !ok:
			q.wrong(p.name, problem.NotAnID, cutShort(part))
			return nil
		case seen[id]:
			q.wrong(p.name, problem.GivenAlreadyIn, part)
			return nil
		}

		ids, seen[id] = append(ids, id), true
	}

	return ids
}

// onlyIDs returns ids; nil if absent. A request with ids may have no filter.
func (q *query) onlyIDs(p idsParam, filters []parameter) []int64 {
	ids := q.ids(p)
	if q.given(p.name) == "" {
		return nil
	}

	for _, f := range filters {
		if name := f.self().name; q.given(name) != "" {
			q.wrong(name, problem.NotWith.Advise("give only one of them"),
				problem.Shown(p.name, p.name+", which already selects everything"))
		}
	}
	return ids
}

// window returns a duration. If the parameter is absent, it returns otherwise.
func (q *query) window(p spanParam, otherwise time.Duration) time.Duration {
	v := q.given(p.name)
	if v == "" {
		return otherwise
	}

	d, err := job.ParseDuration(v)
	if err != nil || d < p.least || d > p.most {
		q.wrong(p.name, problem.NotASpan, cutShort(v), job.Duration(p.least), job.Duration(p.most))
		return otherwise
	}
	return d
}

// label returns a label such as team=data; nil if absent.
func (q *query) label(p labelParam) map[string]string {
	v := q.given(p.name)
	if v == "" {
		return nil
	}

	key, value, ok := strings.Cut(v, "=")
	if !ok || key == "" {
		q.wrong(p.name, problem.NotALabel, cutShort(v))
		return nil
	}

	return map[string]string{key: value}
}

// outcomes returns the outcomes that a word names; nil if absent.
func (q *query) outcomes(p wordParam) []job.Outcome {
	word := q.word(p)
	if word == unsuccessful {
		return job.Unsuccessful()
	}

	o, err := job.ParseOutcome(word)
	if err != nil { // absent, or reported
		return nil
	}
	return []job.Outcome{o}
}

// cursor returns where a page begins; nil for the first page.
func (q *query) cursor(list string) *cursor {
	v := q.given(pageParam.name)
	if v == "" {
		return nil
	}

	c, ok := parseCursor(v)
	if !ok || c.list != list {
		q.wrong(pageParam.name, problem.NotACursor)
		return nil
	}

	return c
}

const (
	defaultLimit = 50
	maxLimit     = 200
)

func (q *query) limit() int { return int(q.number(limitParam)) }

// err returns all mistakes as a problem, or nil.
func (q *query) err() error {
	if q.problems != nil {
		return invalidFields(q.problems)
	}
	return nil
}
