// Package trail follows tables whose ids are assigned before their transactions commit. A reader
// that simply continues after the highest id would skip the rows that commit later. A trail
// remembers the ids that it has not seen. It looks for each of them until no transaction can still
// commit that id.
package trail

import (
	"slices"
	"time"

	"go-crontab/job"
	"go-crontab/sql"
)

const (
	// leastPatience is how long a missing id is looked for at least, in microseconds.
	leastPatience = 30_000_000
	// fewLooks is the least number of looks for a missing id, in case the clock jumps.
	fewLooks = 5

	// manyMissing bounds the number of missing ids, and manyGaps the number of gaps. Beyond these
	// limits, the oldest gaps are given up and counted.
	manyMissing = 50_000
	manyGaps    = 2000

	// spansAtOnce bounds the spans in one statement. Gaps at most near ids apart share a span.
	spansAtOnce = 100
	near        = 64
)

// Trail records which ids of a table were seen: all ids up to High, except the gaps. It can be
// stored as JSON.
type Trail struct {
	High int64 `json:"high"`
	Gaps []Gap `json:"gaps,omitempty"` // in order

	// Patience replaces leastPatience if it is longer. Callers set it to
	// sql.DB.LongestTransaction, because a transaction that has assigned an id cannot commit later
	// than that. Patience is not stored.
	Patience time.Duration `json:"-"`
}

// Gap is a range of ids that were not seen, including both ends.
type Gap struct {
	From  int64      `json:"from"`
	To    int64      `json:"to"`
	Since job.Micros `json:"since"` // when a higher id was first seen
	Looks int        `json:"looks"` // how often its ids were looked for
}

// Clone returns an independent copy. A caller can return to the copy after an error.
func (t Trail) Clone() Trail { return Trail{t.High, slices.Clone(t.Gaps), t.Patience} }

// Pass records ids above High, in ascending order. The ids between them are now missing.
func (t *Trail) Pass(ids []int64, now job.Micros) {
	for _, id := range ids {
		if id > t.High+1 {
			t.Gaps = append(t.Gaps, Gap{From: t.High + 1, To: id - 1, Since: now})
		}
		t.High = max(t.High, id)
	}
}

// fill removes an id from the missing ids. It reports whether the id was missing.
func (t *Trail) fill(id int64) bool {
	i, _ := slices.BinarySearchFunc(t.Gaps, id, func(g Gap, id int64) int {
		if g.To < id {
			return -1
		}
		return 1
	})
	if i == len(t.Gaps) || t.Gaps[i].From > id {
		return false
	}

	// Split the gap around the id.
	g := t.Gaps[i]
	var left []Gap
	if g.From < id {
		left = append(left, Gap{g.From, id - 1, g.Since, g.Looks})
	}
	if id < g.To {
		left = append(left, Gap{id + 1, g.To, g.Since, g.Looks})
	}

	t.Gaps = slices.Replace(t.Gaps, i, i+1, left...)
	return true
}

// spans returns spans of ids that cover all missing ids. Each part is for one statement.
func (t *Trail) spans() [][]sql.Span {
	var out []sql.Span
	for _, g := range t.Gaps {
		if last := len(out) - 1; last >= 0 && g.From-out[last].To <= near {
			out[last].To = g.To
			continue
		}
		out = append(out, sql.Span{From: g.From, To: g.To})
	}
	return slices.Collect(slices.Chunk(out, spansAtOnce))
}

// tire is called after each look for all missing ids. It forgets old gaps that no transaction can
// still fill. It also gives up the oldest gaps beyond the limits, and returns the number of their
// ids. Each of these ids may be a row that is never read.
func (t *Trail) tire(now job.Micros) (lost int64) {
	missing, patience := int64(0), max(leastPatience, job.Micros(t.Patience.Microseconds()))
	t.Gaps = slices.DeleteFunc(t.Gaps, func(g Gap) bool { return now-g.Since >= patience && g.Looks >= fewLooks })

	for i := range t.Gaps {
		t.Gaps[i].Looks++
		missing += t.Gaps[i].To - t.Gaps[i].From + 1
	}

	for len(t.Gaps) > 0 && (missing > manyMissing || len(t.Gaps) > manyGaps) {
		n := t.Gaps[0].To - t.Gaps[0].From + 1
		missing, lost = missing-n, lost+n
		t.Gaps = slices.Delete(t.Gaps, 0, 1)
	}
	return lost
}

// Follow reads the rows that have appeared since the last call. in reads late rows by spans of
// missing ids, and after reads new rows with higher ids. Both must return rows in the order of
// their ids.
//
// Follow returns the late rows followed by the new rows, the number of new rows, and the number of
// ids given up. After an error, the trail may include rows that were not returned. So make a clone
// before the call, and continue with the clone after an error.
func Follow[T any](
	t *Trail, now job.Micros, id func(*T) int64,
	in func([]sql.Span) ([]T, error), after func(int64) ([]T, error),
) (rows []T, fresh int, lost int64, err error) {
	for _, spans := range t.spans() {
		late, err := in(spans)
		if err != nil {
			return nil, 0, 0, err
		}
		for i := range late {
			if t.fill(id(&late[i])) {
				rows = append(rows, late[i])
			}
		}
	}

	next, err := after(t.High)
	if err != nil {
		return nil, 0, 0, err
	}

	lost = t.tire(now)
	ids := make([]int64, len(next))
	for i := range next {
		ids[i] = id(&next[i])
	}
	t.Pass(ids, now)
	return append(rows, next...), len(next), lost, nil
}
