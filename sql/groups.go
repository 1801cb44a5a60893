package sql

import (
	"context"
	stdsql "database/sql"
	"fmt"
	"slices"

	"go-crontab/job"
)

// Group is a named number of slots that the runs of its jobs share in the whole cluster.
type Group struct {
	ID               int64
	Name             string
	Slots            int
	Created, Updated job.Micros
}

const groupColumns = "id, name, slots, created, updated"

func scanGroup(rows *stdsql.Rows) (Group, error) {
	var g Group
	err := rows.Scan(&g.ID, &g.Name, &g.Slots, &g.Created, &g.Updated)
	return g, err
}

// lockGroups locks the groups that an index finds, and no others: a small table would be scanned.
func (tx *Tx) lockGroups(how, index, cond string, args ...any) ([]Group, error) {
	var out []Group
	err := tx.query("lock groups", func(rows *stdsql.Rows) error {
		g, err := scanGroup(rows)
		out = append(out, g)
		return err
	}, "SELECT "+groupColumns+" FROM grp FORCE INDEX ("+index+") WHERE "+cond+" ORDER BY id FOR UPDATE"+how, args...)
	return out, err
}

// LockGroups locks the groups of these names that exist, in the order of the names, and returns them by name. Groups are locked
// after jobs and before tasks.
func (tx *Tx) LockGroups(names []string) (map[string]Group, error) {
	return tx.lockNamedGroups("", names)
}

func (tx *Tx) lockNamedGroups(how string, names []string) (map[string]Group, error) {
	out := map[string]Group{}
	if len(names) == 0 {
		return out, nil
	}
	list, args := in(nil, names)
	rows, err := tx.lockGroups(how, "name", "name IN "+list, args...)
	for _, g := range rows {
		out[g.Name] = g
	}
	return out, err
}

// LockFreeGroups is LockGroups for those rows that nobody else has locked. It waits for none. Those that are locked are busy;
// those that are in neither answer do not exist.
func (tx *Tx) LockFreeGroups(names []string) (free map[string]Group, busy map[string]bool, err error) {
	free, err = tx.lockNamedGroups(" SKIP LOCKED", names)
	if err != nil || len(free) == len(names) {
		return free, nil, err
	}
	busy = map[string]bool{}
	list, args := in(nil, names)
	err = tx.query("look for busy groups", func(rows *stdsql.Rows) error {
		var name string
		err := rows.Scan(&name)
		if _, ok := free[name]; !ok {
			busy[name] = true
		}
		return err
	}, "SELECT name FROM grp FORCE INDEX (name) WHERE name IN "+list, args...)
	return free, busy, err
}

// LockGroupIDs locks the groups that exist, in the order in which LockGroups does: that of their names. Others would wait for each
// other.
func (tx *Tx) LockGroupIDs(ids []int64) ([]Group, error) {
	if len(ids) < 2 {
		return tx.lockGroupIDs("", ids)
	}
	list, args := in(nil, ids)
	var names []string
	err := tx.query("read names of groups", func(rows *stdsql.Rows) error {
		var name string
		err := rows.Scan(&name)
		names = append(names, name)
		return err
	}, "SELECT name FROM grp FORCE INDEX (PRIMARY) WHERE id IN "+list, args...)
	if err != nil || len(names) == 0 {
		return nil, err
	}
	list, args = in(nil, names)
	return tx.lockGroups("", "name", "name IN "+list, args...)
}

// LockFreeGroupIDs locks the groups that exist and that nobody else has locked. It waits for none.
func (tx *Tx) LockFreeGroupIDs(ids []int64) ([]Group, error) {
	return tx.lockGroupIDs(" SKIP LOCKED", ids)
}

func (tx *Tx) lockGroupIDs(how string, ids []int64) ([]Group, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	list, args := in(nil, ids)
	return tx.lockGroups(how, "PRIMARY", "id IN "+list, args...)
}

// Holders are the tasks that hold slots of a group. They may be more than there are: some were taken away, or what executed
// was moved into it.
type Holders struct {
	All       []int64     // those that execute, and those that were woken or given back, and will
	Idle      []Candidate // those of them that nobody has claimed
	Executing int         // how many of them do
}

// SlotHolders lists the tasks that hold a slot of groups, by group.
func (tx *Tx) SlotHolders(groups []int64) (map[int64]Holders, error) {
	out := map[int64]Holders{}
	if len(groups) == 0 {
		return out, nil
	}
	list, args := in(nil, groups)
	err := tx.query("read slots", func(rows *stdsql.Rows) error {
		var group int64
		var state job.State
		var c Candidate
		err := rows.Scan(&group, &c.ID, &state, &c.DueNow, &c.Priority)
		h := out[group]
		h.All = append(h.All, c.ID)
		switch state {
		case job.Idle:
			h.Idle = append(h.Idle, c)
		case job.Executing:
			h.Executing++
		}
		out[group] = h
		return err
	}, "SELECT s.group_id, s.task_id, t.state, t.due_now, t.priority FROM slot s FORCE INDEX (grp) STRAIGHT_JOIN task t ON t.id = s.task_id WHERE s.group_id IN "+list+" AND t.state <> 3", args...)
	return out, err
}

// Slot says that a task holds a slot of a group.
type Slot struct{ TaskID, GroupID int64 }

// TakeSlots writes down who holds slots of groups whose rows this transaction has locked, and writes these, as starts
// write their jobs: for multi-writer engines, where a lock that was only read does not count.
func (tx *Tx) TakeSlots(slots []Slot) error {
	if len(slots) == 0 {
		return nil
	}
	args := make([]any, 0, 2*len(slots))
	for _, s := range slots {
		args = append(args, s.TaskID, s.GroupID)
	}
	if _, err := tx.exec("take slots", "REPLACE INTO slot (task_id, group_id) VALUES "+values(len(slots), 2), args...); err != nil {
		return err
	}
	groups := make([]int64, len(slots))
	for i, s := range slots {
		groups[i] = s.GroupID
	}
	slices.Sort(groups)
	list, args := in(nil, slices.Compact(groups))
	_, err := tx.exec("write groups", "UPDATE grp SET taken = taken + 1 WHERE id IN "+list, args...)
	return err
}

// FreeSlots removes the slots that tasks hold, if they hold one.
func (tx *Tx) FreeSlots(taskIDs []int64) error {
	_, err := tx.remove("free slots", "slot", "task_id", taskIDs)
	return err
}

// LoseSlots takes their slots from those of the tasks that have not begun and that nobody else has locked, and returns these. The
// rows of the groups are locked. Their starts ask for one as all others do, and so that none goes by the one that it has lost the
// tasks are written: for multi-writer engines, as in TakeSlots.
func (tx *Tx) LoseSlots(ids []int64) (lost []int64, err error) {
	if len(ids) == 0 {
		return nil, nil
	}
	rows, err := tx.lockTasks(ids, " SKIP LOCKED")
	if err != nil {
		return nil, err
	}
	for id, r := range rows {
		if r.State == job.Idle || r.State == job.Prepare {
			lost = append(lost, id)
		}
	}
	if len(lost) == 0 {
		return nil, nil
	}
	slices.Sort(lost)
	which, args := oneOf("id", nil, lost)
	if _, err := tx.exec("lose slots", "UPDATE task FORCE INDEX (PRIMARY) SET due_now = due_now + 1 WHERE "+which, args...); err != nil {
		return nil, err
	}
	return lost, tx.FreeSlots(lost)
}

// LateHolder is a task that holds a slot of a group, was to begin at an instant and has not.
type LateHolder struct {
	TaskID, GroupID int64
	DueNow          job.Micros
}

// PassOnSlots takes slots of groups, whose rows this transaction has locked, from those of the tasks that were to begin before an
// instant and have not that are to lose theirs: no node has room for them. It takes some at a time, and returns who lost one.
func (tx *Tx) PassOnSlots(groups []Group, before job.Micros, loses func(LateHolder) bool) (lost []LateHolder, err error) {
	if len(groups) == 0 {
		return nil, nil
	}
	byID := make([]int64, len(groups))
	for i, g := range groups {
		byID[i] = g.ID
	}
	which, args := oneOf("s.group_id", nil, byID)
	err = tx.query("list slots that nobody uses", func(rows *stdsql.Rows) error {
		var h LateHolder
		err := rows.Scan(&h.TaskID, &h.GroupID, &h.DueNow)
		if len(lost) < sweepRows && loses(h) {
			lost = append(lost, h)
		}
		return err
	}, "SELECT s.task_id, s.group_id, t.due_now FROM slot s FORCE INDEX (grp) STRAIGHT_JOIN task t ON t.id = s.task_id WHERE "+which+
		" AND t.state < 2 AND t.due_now < ?", append(args, int64(before))...)
	if err != nil {
		return nil, err
	}
	ids := make([]int64, len(lost))
	for i, h := range lost {
		ids[i] = h.TaskID
	}
	ids, err = tx.LoseSlots(ids)
	return slices.DeleteFunc(lost, func(h LateHolder) bool { return !slices.Contains(ids, h.TaskID) }), err
}

// wakeMost is how many tasks of a group one transaction wakes: the sweeper finds the others.
const wakeMost = 500

// WakeGroups gives the free slots of groups, whose rows this transaction has locked, to the tasks that come next. It
// returns how many it woke.
func (tx *Tx) WakeGroups(groups []Group, now job.Micros) (int, error) {
	ids := make([]int64, len(groups))
	for i, g := range groups {
		ids[i] = g.ID
	}
	holders, err := tx.SlotHolders(ids)
	if err != nil {
		return 0, err
	}
	var next []int64
	var slots []Slot
	for _, g := range groups {
		free := g.Slots - len(holders[g.ID].All)
		if free <= 0 {
			continue
		}
		err := tx.query("read who waits for a slot", func(rows *stdsql.Rows) error {
			var id int64
			err := rows.Scan(&id)
			next, slots = append(next, id), append(slots, Slot{id, g.ID})
			return err
		}, "SELECT t.id FROM waiting w FORCE INDEX (grp) STRAIGHT_JOIN task t ON t.id = w.task_id WHERE w.kind = 2 AND w.group_id = ? AND t.state = 3"+
			" ORDER BY w.turn, w.due, w.task_id LIMIT ?", g.ID, min(free, wakeMost))
		if err != nil {
			return 0, err
		}
	}
	if next, err = tx.wakeable(next); err != nil {
		return 0, err
	}
	if err := tx.wake(next, now); err != nil {
		return 0, err
	}
	return len(next), tx.TakeSlots(slices.DeleteFunc(slots, func(s Slot) bool { return !slices.Contains(next, s.TaskID) }))
}

// PutGroup writes a group that is new, or changes the slots of one, and tells whether it is new. It wakes nobody.
func (tx *Tx) PutGroup(name string, slots int, now job.Micros) (g Group, isNew bool, err error) {
	n, err := tx.exec("put group", "INSERT INTO grp (name, slots, created, updated) VALUES (?, ?, ?, ?)"+
		" ON DUPLICATE KEY UPDATE slots = ?, updated = GREATEST(updated + 1, ?)", name, slots, int64(now), int64(now), slots, int64(now))
	if err != nil {
		return g, false, err
	}
	rows, err := tx.LockGroups([]string{name})
	if err == nil && len(rows) == 0 {
		err = ErrNotFound
	}
	if err != nil {
		return g, false, err
	}
	g = rows[name]
	return g, n == 1, tx.FreeUnbegun(g) // a row that was changed counts twice
}

// FreeUnbegun takes their slots from those who were woken for one and have not begun, if a group, whose row this transaction
// has locked, has fewer slots than holders now: their starts take one that is free, or have them wait. Who is locked by somebody
// else keeps its slot, with which it begins only while fewer execute than there are.
func (tx *Tx) FreeUnbegun(g Group) error {
	var holders int
	var unbegun []int64
	err := tx.query("read slots", func(rows *stdsql.Rows) error {
		var id int64
		var state job.State
		err := rows.Scan(&id, &state)
		if holders++; state != job.Executing {
			unbegun = append(unbegun, id)
		}
		return err
	}, "SELECT t.id, t.state FROM slot s FORCE INDEX (grp) STRAIGHT_JOIN task t ON t.id = s.task_id WHERE s.group_id = ? AND t.state <> 3", g.ID)
	if err != nil || holders <= g.Slots {
		return err
	}
	_, err = tx.LoseSlots(unbegun)
	return err
}

// DeleteGroup deletes a group, whose row the caller has locked.
func (tx *Tx) DeleteGroup(id int64) error {
	n, err := tx.exec("delete group", "DELETE FROM grp WHERE id = ?", id)
	if err == nil && n != 1 {
		err = fmt.Errorf("delete group %d: %w", id, ErrMoved)
	}
	return err
}

// GroupRow is a group and what goes on in it, for people.
type GroupRow struct {
	Group
	Executing, Waiting, Jobs int
}

// Groups lists groups, those with an id after the given one; with a name, that one.
func (db *DB) Groups(ctx context.Context, name string, after int64, limit int) ([]GroupRow, error) {
	cond, args := "g.id > ?", []any{after}
	if name != "" {
		cond, args = "g.name = ?", []any{name}
	}
	var out []GroupRow
	err := db.query(ctx, "list groups", func(rows *stdsql.Rows) error {
		var g GroupRow
		err := rows.Scan(&g.ID, &g.Name, &g.Slots, &g.Created, &g.Updated, &g.Executing, &g.Waiting, &g.Jobs)
		out = append(out, g)
		return err
	}, "SELECT g.id, g.name, g.slots, g.created, g.updated,"+
		" (SELECT COUNT(*) FROM slot s JOIN task t ON t.id = s.task_id WHERE s.group_id = g.id AND t.state = 2),"+
		" (SELECT COUNT(*) FROM waiting w JOIN task t ON t.id = w.task_id WHERE w.kind = 2 AND w.group_id = g.id AND t.state = 3),"+
		" (SELECT COUNT(*) FROM job_ref r WHERE r.kind = 1 AND r.name = g.name)"+
		" FROM grp g WHERE "+cond+" ORDER BY g.id LIMIT ?", append(args, limit)...)
	return out, err
}
