package sql

import (
	"context"
	stdsql "database/sql"

	"go-crontab/job"
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

func scanNode(rows *stdsql.Rows) (n NodeRow, err error) {
	err = rows.Scan(&n.Name, (*Flag)(&n.Draining), &n.Reason, &n.Who, &n.Since)
	return n, err
}

// CordonedNodes lists the nodes that are to take no new work, whether or not they live.
func (db *DB) CordonedNodes(ctx context.Context) ([]NodeRow, error) {
	return Select(db.Reader(ctx), "list cordoned nodes", scanNode, "SELECT "+nodeColumns+" FROM node WHERE cordoned = 1 ORDER BY name")
}

// LockNode locks and returns what was said about a node, or ErrNotFound.
func (tx *Tx) LockNode(name string) (NodeRow, error) {
	return First(Select(tx, "lock node", scanNode, "SELECT "+nodeColumns+" FROM node WHERE name = ? AND cordoned = 1 FOR UPDATE", name))
}

// CordonNode says that a node is to take no new work.
func (tx *Tx) CordonNode(n NodeRow) error {
	_, err := tx.Exec("cordon node", "INSERT INTO node (name, cordoned, draining, reason, who, since) VALUES (?, 1, ?, ?, ?, ?)"+
		" ON DUPLICATE KEY UPDATE cordoned = 1, draining = VALUES(draining), reason = VALUES(reason), who = VALUES(who), since = VALUES(since)",
		n.Name, n.Draining, Cut(n.Reason, 512), Cut(n.Who, 128), int64(n.Since))
	return err
}

// UncordonNode says nothing about a node any more.
func (tx *Tx) UncordonNode(name string) error {
	_, err := tx.Exec("uncordon node", "DELETE FROM node WHERE name = ?", name)
	return err
}
