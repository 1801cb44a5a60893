package trip

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"go-crontab/job"
	"go-crontab/sql"
)

// Group bounds how many runs of its jobs execute at once, and how many start in a period.
type Group struct {
	ID     int32
	Name   string
	Slots  int
	Taken  int          // slots that executing runs hold
	Rate   job.Rate     // zero: none
	Starts []job.Micros // the times of its latest starts, oldest first. It is empty without a rate
	WakeAt job.Micros   // when its waiting runs must be woken by time; zero: never
}

const groupColumns = "id, name, slots, taken, rate, period, starts, wake_at"

func scanGroup(rows *sql.Rows) (*Group, error) {
	g := &Group{}
	var starts []byte
	err := rows.Scan(&g.ID, &g.Name, &g.Slots, &g.Taken, &g.Rate.Starts, &g.Rate.Period, &starts, &g.WakeAt)
	g.SetStarts(starts)
	return g, err
}

// LockGroups locks groups, and returns them by name. It skips groups that are locked already.
func LockGroups(tx *sql.Tx, names []string) (map[string]*Group, error) {
	if len(names) == 0 {
		return nil, nil
	}

	args := make([]any, len(names))
	for i, name := range names {
		args[i] = name
	}

	query := `
		SELECT ` + groupColumns + `
		FROM grp
		WHERE name IN (?` + strings.Repeat(", ?", len(names)-1) + `)
		ORDER BY id
		FOR UPDATE SKIP LOCKED`
	return groupsBy(tx, func(g *Group) string { return g.Name }, query, args...)
}

// LockGroupIDs is like LockGroups, by id.
func LockGroupIDs(tx *sql.Tx, ids []int32) (map[int32]*Group, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	query := `
		SELECT ` + groupColumns + `
		FROM grp FORCE INDEX (PRIMARY)
		WHERE id IN ` + list(slices.Values(ids)) + `
		ORDER BY id
		FOR UPDATE SKIP LOCKED`
	return groupsBy(tx, func(g *Group) int32 { return g.ID }, query)
}

func groupsBy[K comparable](tx *sql.Tx, key func(*Group) K, query string, args ...any) (map[K]*Group, error) {
	found, err := sql.Select(tx, "lock groups", scanGroup, query, args...)
	out := make(map[K]*Group, len(found))
	for _, g := range found {
		out[key(g)] = g
	}
	return out, err
}

// GroupNames returns the names of the groups that exist. It takes no lock.
func GroupNames(r sql.Reader, names []string) (map[string]bool, error) {
	out := map[string]bool{}
	if len(names) == 0 {
		return out, nil
	}

	args := make([]any, len(names))
	for i, name := range names {
		args[i] = name
	}

	scan := func(rows *sql.Rows) (name string, err error) {
		err = rows.Scan(&name)
		return name, err
	}

	query := `
		SELECT name
		FROM grp
		WHERE name IN (?` + strings.Repeat(", ?", len(names)-1) + ")"
	found, err := sql.Select(r, "look for groups", scan, query, args...)
	for _, name := range found {
		out[name] = true
	}

	return out, err
}

// MoveTaken changes the number of taken slots of a locked group.
func MoveTaken(tx *sql.Tx, group int32, by int) error {
	const query = `
		UPDATE grp
		SET taken = taken + ?
		WHERE id = ?`
	n, err := tx.Exec("change used slots", query, by, group)
	return expect("change used slots", n, 1, err)
}

// WokenFirst is the time for which a woken run goes before new runs, which have not waited for a
// slot of the group.
const WokenFirst = 5 * time.Second

// Woken counts, by group, the runs that were woken for a slot in the last WokenFirst and are still
// idle. It reads the idle runs that became due in that time.
func Woken(r sql.Reader, groups []int32, now job.Micros) (map[int32]int, error) {
	out := map[int32]int{}
	if len(groups) == 0 {
		return out, nil
	}

	query := `
		SELECT -grp, COUNT(*)
		FROM run FORCE INDEX (live)
		WHERE owner = 0 AND due_now > ? AND due_now <= ? AND grp < 0
		GROUP BY grp`

	scan := func(rows *sql.Rows) (c [2]int, err error) {
		err = rows.Scan(&c[0], &c[1])
		return c, err
	}

	counts, err := sql.Select(r, "count woken runs", scan, query, int64(now.Add(-WokenFirst)), int64(now))
	for _, c := range counts {
		out[int32(c[0])] = c[1]
	}

	return out, err
}

// WakeGroups wakes the first waiting runs of locked groups, one for each free slot that the rate
// admits now. If the rate keeps other runs waiting, WakeAt says when to wake these. WakeGroups
// returns the number of runs that it woke.
func WakeGroups(tx *sql.Tx, groups []*Group, now job.Micros) (int, error) {
	ids := make([]int32, len(groups))
	for i, g := range groups {
		ids[i] = g.ID
	}

	woken, err := Woken(tx, ids, now)
	if err != nil {
		return 0, err
	}

	var lines []span
	var most []int
	free := map[int32]int{}
	for _, g := range groups {
		free[g.ID] = max(0, g.Free(now)-woken[g.ID])
		n := free[g.ID]
		if g.Rate.Any() {
			n++ // one more run, to see whether runs go on waiting
		}
		if n > 0 {
			lines, most = append(lines, groupLine(g.ID)), append(most, n)
		}
	}

	found, err := firsts(tx, lines, func(i int) int { return most[i] })
	if err != nil {
		return 0, err
	}
	slices.SortFunc(found, func(a, b Held) int { return cmp.Compare(a.DueNow, b.DueNow) })

	byGroup := map[int32][]int64{}
	for _, h := range found {
		g := groupAt(h.DueNow)
		byGroup[g] = append(byGroup[g], h.Launch.Run)
	}

	total := 0
	for _, g := range groups {
		first := byGroup[g.ID]
		runs, err := wakeRuns(tx, first[:min(free[g.ID], len(first))], g.ID, now)
		if err != nil {
			return 0, err
		}
		total += len(runs)
		if err := g.writeWake(tx, woken[g.ID]+len(runs), len(runs) < len(first), now); err != nil {
			return 0, err
		}
	}

	return total, nil
}

// QueuedInGroup counts the runs of a job that wait in the line of a group.
func QueuedInGroup(r sql.Reader, group int32, jobID int64, hash int) (int, error) {
	query := `
		SELECT COUNT(*)
		FROM run FORCE INDEX (live)
		WHERE owner = -1 AND ` + groupLine(group).String() + ` AND hash = ? AND job_id = ?`

	scan := func(rows *sql.Rows) (n int, err error) {
		err = rows.Scan(&n)
		return n, err
	}

	counts, err := sql.Select(r, "count runs that wait for a slot", scan, query, hash, jobID)
	if err != nil || len(counts) == 0 {
		return 0, err
	}

	return counts[0], nil
}
