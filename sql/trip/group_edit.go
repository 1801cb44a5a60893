package trip

import (
	"fmt"

	"go-crontab/job"
	"go-crontab/sql"
)

// LockGroup locks and returns a group; nil: it does not exist. LockGroup waits for starts that
// have locked the row.
func LockGroup(tx *sql.Tx, name string) (*Group, error) {
	query := `
		SELECT ` + groupColumns + `
		FROM grp FORCE INDEX (name)
		WHERE name = ?
		FOR UPDATE`
	found, err := groupsBy(tx, func(g *Group) string { return g.Name }, query, name)
	return found[name], err
}

// ShareGroups returns the groups that exist, and keeps others from deleting them until the
// transaction is over.
func ShareGroups(tx *sql.Tx, names []string) (map[string]bool, error) {
	out := map[string]bool{}
	if len(names) == 0 {
		return out, nil
	}

	scan := func(rows *sql.Rows) (name string, err error) {
		err = rows.Scan(&name)
		out[name] = true
		return name, err
	}

	query := `
		SELECT name
		FROM grp FORCE INDEX (name)
		WHERE name IN ` + sql.Values(1, len(names)) + `
		ORDER BY name
		LOCK IN SHARE MODE`
	_, err := sql.Select(tx, "lock groups for reading", scan, query, texts(names)...)
	return out, err
}

// InsertGroup writes a new group and sets its id. If the name is taken, it returns sql.ErrExists.
func InsertGroup(tx *sql.Tx, g *Group, now job.Micros) error {
	const query = `
		INSERT INTO grp (name, slots, rate, period, created, updated)
		VALUES (?, ?, ?, ?, ?, ?)`
	id, err := tx.Insert("insert group", query, g.Name, g.Slots, g.Rate.Starts, int64(g.Rate.Period),
		int64(now), int64(now))
	if sql.IsDuplicate(err) {
		err = fmt.Errorf("group %q: %w", g.Name, sql.ErrExists)
	}
	g.ID = int32(id)
	return err
}

// SetGroup changes the slots and the rate of a locked group. Taken slots stay taken until their
// runs end. Starts under the old rate count for the new rate, as many as the row has.
func SetGroup(tx *sql.Tx, g *Group, now job.Micros) error {
	const query = `
		UPDATE grp
		SET slots = ?, rate = ?, period = ?, starts = ?, updated = ?
		WHERE id = ?`
	g.trimStarts()
	n, err := tx.Exec("change group", query, g.Slots, g.Rate.Starts, int64(g.Rate.Period), g.startsText(), int64(now), g.ID)
	return expect("change group", n, 1, err)
}

// DropGroup removes a locked group.
func DropGroup(tx *sql.Tx, id int32) error {
	const query = `
		DELETE FROM grp
		WHERE id = ?`
	n, err := tx.Exec("delete group", query, id)
	return expect("delete group", n, 1, err)
}

// GroupsNamed reads the named groups that exist. It takes no lock.
func GroupsNamed(r sql.Reader, names []string) (map[string]Group, error) {
	out := map[string]Group{}
	if len(names) == 0 {
		return out, nil
	}

	query := `
		SELECT ` + groupColumns + `
		FROM grp FORCE INDEX (name)
		WHERE name IN ` + sql.Values(1, len(names))
	found, err := sql.Select(r, "read groups", scanGroup, query, texts(names)...)
	for _, g := range found {
		out[g.Name] = *g
	}
	return out, err
}

// CountLine counts the runs in the line of a group.
func CountLine(r sql.Reader, group int32) (int, error) {
	query := `
		SELECT COUNT(*)
		FROM run FORCE INDEX (live)
		WHERE owner = -1 AND ` + groupLine(group).String()
	found, err := sql.Select(r, "count a queue", scanID, query)
	if err != nil {
		return 0, err
	}
	return int(found[0]), nil
}
