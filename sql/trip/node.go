package trip

import (
	"go-crontab/job"
	"go-crontab/sql"
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

func scanNode(rows *sql.Rows) (n NodeRow, err error) {
	err = rows.Scan(&n.Name, (*sql.Flag)(&n.Draining), &n.Reason, &n.Who, &n.Since)
	return n, err
}

// CordonedNodes lists the nodes that are to take no new work, whether or not they live.
func CordonedNodes(r sql.Reader) ([]NodeRow, error) {
	return sql.Select(r, "list cordoned nodes", scanNode, "SELECT "+nodeColumns+" FROM node WHERE cordoned = 1 ORDER BY name")
}

// LockNode locks and returns what was said about a node, or sql.ErrNotFound.
func LockNode(tx *sql.Tx, name string) (NodeRow, error) {
	return sql.First(sql.Select(tx, "lock node", scanNode, "SELECT "+nodeColumns+" FROM node WHERE name = ? AND cordoned = 1 FOR UPDATE", name))
}
