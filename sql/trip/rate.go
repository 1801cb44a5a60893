package trip

import (
	"encoding/binary"
	"math"
	"slices"
	"time"

	"go-crontab/job"
	"go-crontab/sql"
)

// A group with a rate keeps the times of its latest starts in its row, at most as many as the rate
// admits in a period. The rate admits a start if fewer of these times lie in the period before.
// The times never decrease, so the group starts nothing too early after the clock was set back.

// span is how long a start counts. A process may begin up to a spawn window after its start was
// decided. So a start counts a little longer than the period: otherwise too many processes could
// begin within one period.
func (g *Group) span() time.Duration {
	period := time.Duration(g.Rate.Period) * time.Microsecond
	return period + min(time.Second, period/10)
}

// Admits returns how many starts the rate admits at an instant.
func (g *Group) Admits(at job.Micros) int {
	if !g.Rate.Any() {
		return math.MaxInt
	}
	return g.Rate.Starts - g.within(at.Add(-g.span()))
}

// within counts the starts after an instant.
func (g *Group) within(after job.Micros) int {
	n := 0
	for n < len(g.Starts) && g.Starts[len(g.Starts)-1-n] > after {
		n++
	}
	return n
}

// Recent counts the starts in the period before an instant.
func (g *Group) Recent(now job.Micros) int { return g.within(now - g.Rate.Period) }

// Free returns how many runs may start at an instant.
func (g *Group) Free(at job.Micros) int { return min(g.Slots-g.Taken, g.Admits(at)) }

// NextStart returns the first instant from now on at which the rate admits one more start, after
// the given number of other starts.
func (g *Group) NextStart(now job.Micros, others int) job.Micros {
	if g.Admits(now) > others {
		return now
	}
	i := min(len(g.Starts)-g.Rate.Starts+others, len(g.Starts)-1)
	if i < 0 {
		return now
	}
	return max(now, g.Starts[i].Add(g.span()))
}

// Count adds a start at an instant, if the group has a rate.
func (g *Group) Count(at job.Micros) {
	if !g.Rate.Any() {
		return
	}
	if n := len(g.Starts); n > 0 {
		at = max(at, g.Starts[n-1])
	}
	g.Starts = append(g.Starts, at)
	g.trimStarts()
}

// trimStarts keeps only the starts that can still count against the rate.
func (g *Group) trimStarts() {
	if !g.Rate.Any() {
		g.Starts = nil
		return
	}
	g.Starts = g.Starts[max(0, len(g.Starts)-g.Rate.Starts):]
}

// SetStarts reads the column.
func (g *Group) SetStarts(text []byte) {
	for ; g.Rate.Any() && len(text) >= 8; text = text[8:] {
		g.Starts = append(g.Starts, job.Micros(binary.BigEndian.Uint64(text)))
	}
	g.trimStarts()
}

// startsText is the value of the column; nil is NULL.
func (g *Group) startsText() (text []byte) {
	for _, at := range g.Starts {
		text = binary.BigEndian.AppendUint64(text, uint64(at))
	}
	return text
}

// bringBack moves starts that lie more than a period ahead to now, and reports whether there were
// any. Such starts mean that MySQL's clock was set back. With them, the group would start nothing
// until the clock reaches them again.
func (g *Group) bringBack(now job.Micros) (moved bool) {
	latest := now.Add(g.span())
	for i, at := range g.Starts {
		if at > latest {
			g.Starts[i], moved = now, true
		}
	}
	if moved {
		slices.Sort(g.Starts)
	}
	return moved
}

// MoveStarted writes the starts of a locked group, and changes its number of taken slots.
func MoveStarted(tx *sql.Tx, g *Group, by int) error {
	const query = `
		UPDATE grp
		SET taken = taken + ?, starts = ?
		WHERE id = ?`
	n, err := tx.Exec("count starts of a group", query, by, g.startsText(), g.ID)
	return expect("count starts of a group", n, 1, err)
}

// wakePause is the least pause before time wakes runs of a group again. With this pause, few
// transactions wake many runs. It is also the pause after a look that found rows locked.
const wakePause = 50 * time.Millisecond

// writeWake writes when time must wake the next runs of a locked group. woken is the number of
// runs that are woken now. rest says whether other runs go on waiting. Runs that wait for the rate
// need this time, because no end of a run wakes them.
func (g *Group) writeWake(tx *sql.Tx, woken int, rest bool, now job.Micros) error {
	was := g.WakeAt
	g.WakeAt = g.nextWake(woken, rest, now)
	moved := g.bringBack(now)
	if g.WakeAt == was && !moved {
		return nil
	}

	const query = `
		UPDATE grp
		SET wake_at = ?, starts = ?
		WHERE id = ?`
	n, err := tx.Exec("write when to wake a group", query, int64(g.WakeAt), g.startsText(), g.ID)
	return expect("write when to wake a group", n, 1, err)
}

func (g *Group) nextWake(woken int, rest bool, now job.Micros) job.Micros {
	if !rest || !g.Rate.Any() {
		return 0
	}

	at := job.Micros(math.MaxInt64)
	if g.Slots-g.Taken > woken { // without a free slot, the end of a run wakes the next one
		at = max(g.NextStart(now, woken), now.Add(wakePause))
	}
	if woken > 0 {
		at = min(at, now.Add(WokenFirst)) // a woken run may never start
	}
	if at == math.MaxInt64 {
		return 0
	}
	return at
}

// Lined returns the groups with a rate in whose lines runs wait, by id.
func Lined(r sql.Reader, groups []*Group) (map[int32]bool, error) {
	var lines []span
	for _, g := range groups {
		if g.Rate.Any() {
			lines = append(lines, groupLine(g.ID))
		}
	}

	found, err := firsts(r, lines, func(int) int { return 1 })
	lined := make(map[int32]bool, len(found))
	for _, h := range found {
		lined[groupAt(h.DueNow)] = true
	}
	return lined, err
}

// Waking is a group whose waiting runs must be woken at an instant.
type Waking struct {
	Group int32
	At    job.Micros
}

// WakingBefore lists the groups whose waiting runs time must wake before an instant. It takes no
// lock.
func WakingBefore(r sql.Reader, before job.Micros) ([]Waking, error) {
	const query = `
		SELECT id, wake_at
		FROM grp FORCE INDEX (wake)
		WHERE wake_at > 0 AND wake_at < ?`
	scan := func(rows *sql.Rows) (w Waking, err error) {
		err = rows.Scan(&w.Group, &w.At)
		return w, err
	}
	return sql.Select(r, "look for groups to wake", scan, query, int64(before))
}
