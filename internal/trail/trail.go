// Package trail follows tables whose ids are given before their transactions commit: whoever reads up to the highest id has
// left out those that commit later. A trail knows which ids it has not seen, and has them looked for until no transaction can
// hold them any more.
package trail

import (
	"slices"
	"time"

	"go-crontab/job"
	"go-crontab/sql"
)

const (
	// leastPatience is for how long an id that was left out is looked for at least.
	leastPatience = 30_000_000 // microseconds
	// fewLooks is how often it is looked for at least, should the clock step.
	fewLooks = 5
	// manyMissing bounds how many ids are looked for, and manyGaps in how many gaps: the oldest go, and are counted.
	manyMissing = 50_000
	manyGaps    = 2000
	// spansAtOnce bounds one statement; gaps so near to each other are read together with what is between them.
	spansAtOnce = 100
	near        = 64
)

// Trail knows which ids of a table were seen: all up to High but for the gaps. It can be written down as JSON.
type Trail struct {
	High int64 `json:"high"`
	Gaps []Gap `json:"gaps,omitempty"` // by id

	// Patience is for how long an id that was left out is looked for, if that is longer than leastPatience: as late as
	// sql.DB.LongestTransaction the transaction that got it may commit. It is not written down.
	Patience time.Duration `json:"-"`
}

// Gap is a range of ids that were not seen, both ends included.
type Gap struct {
	From  int64      `json:"from"`
	To    int64      `json:"to"`
	Since job.Micros `json:"since"` // when it was passed
	Looks int        `json:"looks"` // how often it was looked for
}

// Clone returns a trail of its own, for who may have to go back to this one.
func (t Trail) Clone() Trail { return Trail{t.High, slices.Clone(t.Gaps), t.Patience} }

// Pass notes ids behind High, in their order. What they leave out is missing from now on.
func (t *Trail) Pass(ids []int64, now job.Micros) {
	for _, id := range ids {
		if id > t.High+1 {
			t.Gaps = append(t.Gaps, Gap{From: t.High + 1, To: id - 1, Since: now})
		}
		t.High = max(t.High, id)
	}
}

// fill notes an id, and tells whether it was missing.
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

// spans are what to read to find what is missing, in parts of one statement each.
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

// tire forgets, once all that is missing was looked for, what has been for so long that nobody can be writing it, and
// what is too much. It returns how many ids of the latter there were: each may be a row that nobody looks at.
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

// Follow reads what came on a trail: what was missing, by spans of ids, and what is new, after an id, both in the order of
// the ids. It returns the rows, how many of them are new, and how many ids were given up. After an error the trail may know of
// rows that were not returned: a clone of before does not.
func Follow[T any](t *Trail, now job.Micros, id func(*T) int64, in func([]sql.Span) ([]T, error), after func(int64) ([]T, error)) (rows []T, fresh int, lost int64, err error) {
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
