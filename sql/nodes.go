package sql

import (
	"context"
	stdsql "database/sql"

	"go-crontab/job"

	"github.com/google/uuid"
)

// NodeRow is what people said about a node, by its name. It outlives sessions; a node about which nothing is said has
// no row.
type NodeRow struct {
	Name     string
	Draining bool // it takes no new work, and somebody waits until it has none
	Reason   string
	Who      string
	Since    job.Micros // since when it takes no new work
}

const nodeColumns = "name, draining, reason, who, since"

func scanNodes(out *[]NodeRow) func(*stdsql.Rows) error {
	return func(rows *stdsql.Rows) error {
		var n NodeRow
		err := rows.Scan(&n.Name, (*flag)(&n.Draining), &n.Reason, &n.Who, &n.Since)
		*out = append(*out, n)
		return err
	}
}

// CordonedNodes lists the nodes that are to take no new work, whether or not they live.
func (db *DB) CordonedNodes(ctx context.Context) ([]NodeRow, error) {
	var out []NodeRow
	err := db.query(ctx, "list cordoned nodes", scanNodes(&out), "SELECT "+nodeColumns+" FROM node WHERE cordoned = 1 ORDER BY name")
	return out, err
}

// LockNode locks and returns what was said about a node, or ErrNotFound.
func (tx *Tx) LockNode(name string) (NodeRow, error) {
	var out []NodeRow
	err := tx.query("lock node", scanNodes(&out), "SELECT "+nodeColumns+" FROM node WHERE name = ? AND cordoned = 1 FOR UPDATE", name)
	if err == nil && len(out) == 0 {
		err = ErrNotFound
	}
	if err != nil {
		return NodeRow{}, err
	}
	return out[0], nil
}

// CordonNode says that a node is to take no new work.
func (tx *Tx) CordonNode(n NodeRow) error {
	_, err := tx.exec("cordon node", "INSERT INTO node (name, cordoned, draining, reason, who, since) VALUES (?, 1, ?, ?, ?, ?)"+
		" ON DUPLICATE KEY UPDATE cordoned = 1, draining = VALUES(draining), reason = VALUES(reason), who = VALUES(who), since = VALUES(since)",
		n.Name, n.Draining, cut(n.Reason, 512), cut(n.Who, 128), int64(n.Since))
	return err
}

// UncordonNode says nothing about a node any more.
func (tx *Tx) UncordonNode(name string) error {
	_, err := tx.exec("uncordon node", "DELETE FROM node WHERE name = ?", name)
	return err
}

// Load is how many tasks a session owns.
type Load struct{ Prepared, Executing int }

// Loads counts the tasks of each session as their rows say, which is newer than what its last beat told.
func (db *DB) Loads(ctx context.Context) (map[uuid.UUID]Load, error) {
	out := map[uuid.UUID]Load{}
	err := db.query(ctx, "count tasks of sessions", func(rows *stdsql.Rows) error {
		var (
			id uuid.UUID
			l  Load
		)
		err := rows.Scan(&id, &l.Prepared, &l.Executing)
		out[id] = l
		return err
	}, "SELECT session_id, SUM(state = 1), SUM(state = 2) FROM task FORCE INDEX (owner) WHERE session_id > "+nobody+" GROUP BY session_id")
	return out, err
}

// HandlerOff is a handler that is disabled in the whole cluster.
type HandlerOff struct {
	Handler string
	Reason  string
	Who     string
	Since   job.Micros
}

const handlerColumns = "handler, reason, who, since"

func scanHandlers(out *[]HandlerOff) func(*stdsql.Rows) error {
	return func(rows *stdsql.Rows) error {
		var h HandlerOff
		err := rows.Scan(&h.Handler, &h.Reason, &h.Who, &h.Since)
		*out = append(*out, h)
		return err
	}
}

// HandlersOff lists the handlers that are disabled.
func (db *DB) HandlersOff(ctx context.Context) ([]HandlerOff, error) {
	var out []HandlerOff
	err := db.query(ctx, "list disabled handlers", scanHandlers(&out), "SELECT "+handlerColumns+" FROM handler_off ORDER BY handler")
	return out, err
}

// HandlersOff tells which of some handlers are disabled.
func (tx *Tx) HandlersOff(keys []string) (map[string]HandlerOff, error) {
	out := map[string]HandlerOff{}
	if len(keys) == 0 {
		return out, nil
	}
	list, args := in(nil, keys)
	var found []HandlerOff
	err := tx.query("read disabled handlers", scanHandlers(&found), "SELECT "+handlerColumns+" FROM handler_off WHERE handler IN "+list, args...)
	for _, h := range found {
		out[h.Handler] = h
	}
	return out, err
}

// LockHandlerOff locks and returns the row of a handler that is disabled, or ErrNotFound.
func (tx *Tx) LockHandlerOff(key string) (HandlerOff, error) {
	var out []HandlerOff
	err := tx.query("lock disabled handler", scanHandlers(&out), "SELECT "+handlerColumns+" FROM handler_off WHERE handler = ? FOR UPDATE", key)
	if err == nil && len(out) == 0 {
		err = ErrNotFound
	}
	if err != nil {
		return HandlerOff{}, err
	}
	return out[0], nil
}

// DisableHandler says that jobs with a handler are not started.
func (tx *Tx) DisableHandler(h HandlerOff) error {
	_, err := tx.exec("disable handler", "INSERT INTO handler_off (handler, reason, who, since) VALUES (?, ?, ?, ?)"+
		" ON DUPLICATE KEY UPDATE reason = VALUES(reason), who = VALUES(who), since = VALUES(since)",
		h.Handler, cut(h.Reason, 512), cut(h.Who, 128), int64(h.Since))
	return err
}

// EnableHandler says nothing about a handler any more.
func (tx *Tx) EnableHandler(key string) error {
	_, err := tx.exec("enable handler", "DELETE FROM handler_off WHERE handler = ?", key)
	return err
}

// HandlerJobs counts the living jobs of each handler, those of some apps or, with nil, of all.
func (db *DB) HandlerJobs(ctx context.Context, apps []string) (map[string]int, error) {
	out := map[string]int{}
	cond, args := ofApps("app", apps)
	err := db.query(ctx, "count jobs of handlers", func(rows *stdsql.Rows) error {
		var (
			key stdsql.NullString
			n   int
		)
		err := rows.Scan(&key, &n)
		if key.Valid {
			out[key.String] = n
		}
		return err
		// What a hand wrote into spec need not be JSON.
	}, "SELECT IF(JSON_VALID(spec), JSON_UNQUOTE(JSON_EXTRACT(spec, '$.handler')), NULL) AS handler, COUNT(*) FROM job WHERE living = 1 AND place <> 0 AND "+cond+" GROUP BY 1", args...)
	return out, err
}
