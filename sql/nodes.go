package sql

import (
	"context"
	stdsql "database/sql"
	"slices"

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
	return first(out, err)
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
	return first(out, err)
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

const (
	// ofHandlers holds of the places p of all jobs that name a handler. Of others it may hold too.
	ofHandlers = "p.selector LIKE '%" + job.HandlerLabel + "%'"
	// handlerPart is how many jobs one statement looks at to find their handlers. It takes some tens of milliseconds.
	handlerPart = 10_000
)

// HandlerJobs counts the living jobs of each handler, those of some apps or, with nil, of all. No index tells the handlers of
// jobs. So once there has been a job with any, it looks at all jobs, in many short statements: among a million that takes
// seconds, and among ten million longer than a request may.
func (db *DB) HandlerJobs(ctx context.Context, apps []string) (map[string]int, error) {
	out := map[string]int{}
	places, err := db.ids(ctx, "find a place of handlers", "SELECT p.id FROM place p WHERE "+ofHandlers+" LIMIT 1")
	if err != nil || len(places) == 0 {
		return out, err
	}
	if apps == nil {
		return out, db.handlerJobs(ctx, out, "living", "living = 1")
	}
	for _, app := range apps {
		if err := db.handlerJobs(ctx, out, "app_living", "app = ? AND living = 1", app); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// handlerJobs adds the jobs of one range of an index, which has them in the order of their ids.
func (db *DB) handlerJobs(ctx context.Context, out map[string]int, index, where string, args ...any) error {
	// What a hand wrote into spec need not be JSON.
	query := "SELECT IF(p.id IS NOT NULL AND JSON_VALID(job.spec), JSON_UNQUOTE(JSON_EXTRACT(job.spec, '$.handler')), NULL) AS handler, COUNT(*), MAX(job.id)" +
		" FROM (SELECT id FROM job FORCE INDEX (" + index + ") WHERE " + where + " AND id > ? ORDER BY id LIMIT ?) part" +
		" STRAIGHT_JOIN job ON job.id = part.id LEFT JOIN place p ON p.id = job.place AND " + ofHandlers + " GROUP BY 1"
	last, read := int64(0), handlerPart
	for read == handlerPart {
		read = 0
		err := db.query(ctx, "count jobs of handlers", func(rows *stdsql.Rows) error {
			var (
				key stdsql.NullString
				n   int
				to  int64
			)
			err := rows.Scan(&key, &n, &to)
			if key.Valid {
				out[key.String] += n
			}
			read, last = read+n, max(last, to)
			return err
		}, query, append(slices.Clone(args), last, handlerPart)...)
		if err != nil {
			return err
		}
	}
	return nil
}
