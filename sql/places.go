package sql

import (
	"context"
	stdsql "database/sql"
	"slices"

	"go-crontab/job"
)

// A place is what jobs want of the nodes that run them: a selector in its canonical form. Jobs and tasks carry its
// number, 0 for those that any node may run, so that a claim finds the tasks that are for its node in the index alone.
// The row of a place never changes and never goes.

// Place is a row of table place.
type Place struct {
	ID       int
	Selector string
}

// PlaceID returns the number of a place, which is written if it is not there; 0 for the empty selector.
func (tx *Tx) PlaceID(selector string) (int, error) {
	if selector == "" {
		return 0, nil
	}
	found, err := tx.places("SELECT id, selector FROM place WHERE selector = ?", selector)
	if err != nil || len(found) > 0 {
		return placeID(found), err
	}
	id, err := tx.insert("insert place", "INSERT INTO place (selector) VALUES (?) ON DUPLICATE KEY UPDATE id = LAST_INSERT_ID(id)", selector)
	return int(id), err
}

func placeID(found []Place) int {
	if len(found) == 0 {
		return 0
	}
	return found[0].ID
}

func scanPlaces(out *[]Place) func(*stdsql.Rows) error {
	return func(rows *stdsql.Rows) error {
		var p Place
		err := rows.Scan(&p.ID, &p.Selector)
		*out = append(*out, p)
		return err
	}
}

func (tx *Tx) places(query string, args ...any) ([]Place, error) {
	var out []Place
	err := tx.query("read places", scanPlaces(&out), query, args...)
	return out, err
}

// PlacesOf reads places by number.
func (tx *Tx) PlacesOf(ids []int) ([]Place, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	list, args := in(nil, ids)
	return tx.places(placesOf+list, args...)
}

const placesOf = "SELECT id, selector FROM place WHERE id IN "

// Places lists the places whose numbers are greater than one.
func (db *DB) Places(ctx context.Context, after int) ([]Place, error) {
	var out []Place
	err := db.query(ctx, "list places", scanPlaces(&out), "SELECT id, selector FROM place WHERE id > ? ORDER BY id", after)
	return out, err
}

// HoldPlaces keeps places from being locked by others until the transaction ends. Who has disabled a handler locks them, so
// that it waits for the starts that did not see it.
func (tx *Tx) HoldPlaces(ids []int) error { return tx.lockPlaces(ids, "LOCK IN SHARE MODE") }

// LockPlaces locks places.
func (tx *Tx) LockPlaces(ids []int) error { return tx.lockPlaces(ids, "FOR UPDATE") }

func (tx *Tx) lockPlaces(ids []int, how string) error {
	if len(ids) == 0 {
		return nil
	}
	list, args := in(nil, slices.Sorted(slices.Values(ids)))
	return tx.query("lock places", func(rows *stdsql.Rows) error { return rows.Scan(new(int)) },
		"SELECT id FROM place FORCE INDEX (PRIMARY) WHERE id IN "+list+" ORDER BY id "+how, args...)
}

// PlaceTasks gives tasks, locked by this transaction, another place.
func (tx *Tx) PlaceTasks(place int, ids []int64) error {
	if len(ids) == 0 {
		return nil
	}
	list, args := in([]any{place}, ids)
	_, err := tx.exec("place tasks", "UPDATE task FORCE INDEX (PRIMARY) SET place = ? WHERE id IN "+list, args...)
	return err
}

// SpawnUntil is until when something may be spawned for executing attempts of jobs of these places; zero if none
// executes.
func (tx *Tx) SpawnUntil(places []int) (job.Micros, error) {
	var until stdsql.NullInt64
	if len(places) == 0 {
		return 0, nil
	}
	list, args := in(nil, places)
	err := tx.query("read spawn windows", func(rows *stdsql.Rows) error { return rows.Scan(&until) },
		"SELECT MAX(t.spawn_by) FROM task t FORCE INDEX (slice) JOIN job j ON j.id = t.job_id WHERE t.state = 2 AND j.place IN "+list, args...)
	return job.Micros(until.Int64), err
}

// Unplaced is a task that no node takes, or that waits for one.
type Unplaced struct {
	TaskID, JobID int64
	Place         int
}

func (db *DB) unplaced(ctx context.Context, what, query string, args ...any) ([]Unplaced, error) {
	var out []Unplaced
	err := db.query(ctx, what, func(rows *stdsql.Rows) error {
		var u Unplaced
		err := rows.Scan(&u.TaskID, &u.JobID, &u.Place)
		out = append(out, u)
		return err
	}, query, args...)
	return out, err
}

// OverdueTasks lists idle tasks of places that are due before an instant, the earliest due first. It takes no lock.
func (db *DB) OverdueTasks(ctx context.Context, places []int, before job.Micros, limit int) ([]Unplaced, error) {
	if len(places) == 0 {
		return nil, nil
	}
	list, args := in([]any{int64(before)}, places)
	return db.unplaced(ctx, "list overdue tasks", "SELECT id, job_id, place FROM task FORCE INDEX (slice) WHERE state = 0 AND due_now < ? AND place IN "+list+
		" ORDER BY due_now LIMIT ?", append(args, limit)...)
}

// AwaitedPlaces lists the places for whose nodes tasks wait. It reads one entry of an index for each.
func (db *DB) AwaitedPlaces(ctx context.Context) ([]int, error) {
	ids, err := db.ids(ctx, "list awaited places", "SELECT DISTINCT group_id FROM waiting FORCE INDEX (grp) WHERE kind = 3")
	out := make([]int, len(ids))
	for i, id := range ids {
		out[i] = int(id)
	}
	return out, err
}

// WaitsForPlaces lists tasks that wait for nodes of these places. It takes no lock.
func (db *DB) WaitsForPlaces(ctx context.Context, places []int, limit int) ([]Unplaced, error) {
	if len(places) == 0 {
		return nil, nil
	}
	list, args := in(nil, places)
	return db.unplaced(ctx, "list waits for nodes", "SELECT task_id, job_id, group_id FROM waiting FORCE INDEX (grp) WHERE kind = 3 AND group_id IN "+list+" LIMIT ?",
		append(args, limit)...)
}

// ExpiredWaitsForNodes lists tasks that have waited for a node for too long. It takes no lock.
func (db *DB) ExpiredWaitsForNodes(ctx context.Context, now job.Micros, limit int) ([]Unplaced, error) {
	return db.unplaced(ctx, "list expired waits for nodes", "SELECT task_id, job_id, group_id FROM waiting FORCE INDEX (expires)"+
		" WHERE kind = 3 AND expires <= ? ORDER BY expires LIMIT ?", int64(now), limit)
}

// PlacesOf reads places by number.
func (db *DB) PlacesOf(ctx context.Context, ids []int) ([]Place, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	list, args := in(nil, ids)
	var out []Place
	err := db.query(ctx, "read places", scanPlaces(&out), placesOf+list, args...)
	return out, err
}

// RankTasks gives tasks, locked by this transaction and begun by nobody, the priority that their job has now.
func (tx *Tx) RankTasks(priority int, tasks []TaskRow) error {
	var others []int64
	for _, t := range tasks {
		if t.Priority != priority {
			others = append(others, t.ID)
		}
	}
	if len(others) == 0 {
		return nil
	}
	list, args := in([]any{priority}, others)
	_, err := tx.exec("rank tasks", "UPDATE task FORCE INDEX (PRIMARY) SET priority = ? WHERE id IN "+list, args...)
	return err
}

// MoveTasks gives tasks, locked by this transaction and begun by nobody, the place that their job has now. Those that
// wait for a node become idle: another one may do, or none.
func (tx *Tx) MoveTasks(place int, tasks []TaskRow) error {
	var moved []int64
	for _, t := range tasks {
		if t.Place != place {
			moved = append(moved, t.ID)
		}
	}
	if err := tx.PlaceTasks(place, moved); err != nil {
		return err
	}
	kinds, err := tx.waitsOf(tasks)
	if err != nil {
		return err
	}
	var waiting []int64
	for id, kind := range kinds {
		if kind == WaitNode {
			waiting = append(waiting, id)
		}
	}
	slices.Sort(waiting)
	return tx.WakeTasks(waiting, 0) // they are due when they were
}

// WaitingForNodes returns those of the tasks, locked by this transaction, that wait for a node.
func (tx *Tx) WaitingForNodes(tasks []TaskRow) ([]TaskRow, error) {
	kinds, err := tx.waitsOf(tasks)
	var out []TaskRow
	for _, t := range tasks {
		if kind, ok := kinds[t.ID]; ok && kind == WaitNode {
			out = append(out, t)
		}
	}
	return out, err
}
