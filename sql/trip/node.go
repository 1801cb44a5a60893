package trip

import (
	"go-crontab/job"
	"go-crontab/sql"
)

// NodeRow holds the marks that people put on a node. A mark belongs to the node's name, so it
// outlives sessions. A node without marks has no row.
type NodeRow struct {
	Name     string
	Draining bool // it takes no new work, and a person waits until it is empty
	Reason   string
	Who      string
	Since    job.Micros // when it stopped taking new work
}

const nodeColumns = "name, draining, reason, who, since"

func scanNode(rows *sql.Rows) (n NodeRow, err error) {
	err = rows.Scan(&n.Name, (*sql.Flag)(&n.Draining), &n.Reason, &n.Who, &n.Since)
	return n, err
}

// CordonedNodes lists the nodes, living or not, that must take no new work.
func CordonedNodes(r sql.Reader) ([]NodeRow, error) {
	const query = `
		SELECT ` + nodeColumns + `
		FROM node
		WHERE cordoned = 1
		ORDER BY name`
	return sql.Select(r, "list cordoned nodes", scanNode, query)
}

// LockNode locks and returns the row of a node. If there is none, the error is sql.ErrNotFound.
func LockNode(tx *sql.Tx, name string) (NodeRow, error) {
	const query = `
		SELECT ` + nodeColumns + `
		FROM node
		WHERE name = ? AND cordoned = 1
		FOR UPDATE`
	return sql.First(sql.Select(tx, "lock node", scanNode, query, name))
}
