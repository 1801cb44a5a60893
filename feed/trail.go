package feed

import (
	"slices"
	"time"

	"go-crontab/sql"
)

const (
	// patience is for how long a missing id is looked for. The transaction that got it may commit as late as that: it
	// consists of a few statements of at most sql.Timeouts.Read each (3 s), and MySQL ends the transaction of a link that
	// is silent for longer than Timeouts.Idle (8 s), whatever became of its node.
	patience = 30 * time.Second
	// manyMissing bounds how many ids are looked for.
	manyMissing = 20_000
	// spansAtOnce bounds one statement.
	spansAtOnce = 100
	// near gaps are read together with what is between them, which is known.
	near = 64
)

// trail knows which ids of a table were seen: all up to high but for the gaps.
type trail struct {
	high    int64
	gaps    []gap // by id
	missing int64 // ids in them
}

// gap is a range of ids that were not seen, both ends included.
type gap struct {
	from, to int64
	since    time.Time
}

func (g gap) len() int64 { return g.to - g.from + 1 }

// pass notes ids behind high, in their order. What they leave out is missing from now on.
func (t *trail) pass(ids []int64, now time.Time) {
	for _, id := range ids {
		if id > t.high+1 {
			g := gap{t.high + 1, id - 1, now}
			t.gaps = append(t.gaps, g)
			t.missing += g.len()
		}
		t.high = max(t.high, id)
	}
}

// find returns the gap that has an id.
func (t *trail) find(id int64) (i int, ok bool) {
	i, _ = slices.BinarySearchFunc(t.gaps, id, func(g gap, id int64) int {
		if g.to < id {
			return -1
		}
		return 1
	})
	return i, i < len(t.gaps) && t.gaps[i].from <= id
}

// lacks tells whether an id is one of those that are missing.
func (t *trail) lacks(id int64) bool {
	_, ok := t.find(id)
	return ok
}

// fill notes an id that was missing.
func (t *trail) fill(id int64) {
	i, ok := t.find(id)
	if !ok {
		return
	}
	g := t.gaps[i]
	var left []gap
	if g.from < id {
		left = append(left, gap{g.from, id - 1, g.since})
	}
	if id < g.to {
		left = append(left, gap{id + 1, g.to, g.since})
	}
	t.gaps = slices.Replace(t.gaps, i, i+1, left...)
	t.missing--
}

// spans are what to read to find what is missing, in parts of one statement each.
func (t *trail) spans() [][]sql.Span {
	var out []sql.Span
	for _, g := range t.gaps {
		if last := len(out) - 1; last >= 0 && g.from-out[last].To <= near {
			out[last].To = g.to
			continue
		}
		out = append(out, sql.Span{From: g.from, To: g.to})
	}
	return slices.Collect(slices.Chunk(out, spansAtOnce))
}

// tire forgets, once all that is missing was looked for, what has been for so long that nobody can be writing it, and
// what is too much. It tells whether something of that might have come.
func (t *trail) tire(now time.Time) (lost bool) {
	t.gaps = slices.DeleteFunc(t.gaps, func(g gap) bool {
		tired := now.Sub(g.since) >= patience
		if tired {
			t.missing -= g.len()
		}
		return tired
	})
	for t.missing > manyMissing {
		t.missing -= t.gaps[0].len()
		t.gaps = slices.Delete(t.gaps, 0, 1)
		lost = true
	}
	return lost
}
