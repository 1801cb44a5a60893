package sql

import (
	"context"

	"go-crontab/job"
)

// The subjects of notes.
const (
	NoteCertificate = "certificate"
	NoteOIDC        = "oidc"
)

// NodeNote is a fact that a node wrote about itself, because only the node can see it.
type NodeNote struct {
	Node    string
	What    string
	Expires job.Micros // of the certificate
	Error   string     // why the OIDC issuer cannot be reached; empty if it can
	Since   job.Micros // when the error began
	Alive   bool       // the node has a session
}

// NodeNotes lists all notes.
func (db *DB) NodeNotes(ctx context.Context) ([]NodeNote, error) {
	scan := func(rows *Rows) (n NodeNote, err error) {
		err = rows.Scan(&n.Node, &n.What, &n.Expires, &n.Error, &n.Since, (*Flag)(&n.Alive))
		return n, err
	}
	return Select(db.Reader(ctx), "list notes of nodes", scan, `
		SELECT n.node, n.what, n.expires, n.error, n.since,
			EXISTS (SELECT 1 FROM session s WHERE s.node = n.node)
		FROM node_note n
		ORDER BY n.node, n.what`)
}

// WriteNodeNotes writes the notes of a node. It removes all older notes of this node, and all notes
// of the nodes in gone.
func (db *DB) WriteNodeNotes(ctx context.Context, node string, notes []NodeNote, gone []string) error {
	return db.Tx(ctx, func(tx *Tx) error {
		list, args := In(nil, append([]string{node}, gone...))
		if _, err := tx.Exec("remove notes of nodes", "DELETE FROM node_note WHERE node IN "+list, args...); err != nil {
			return err
		}
		for _, n := range notes {
			_, err := tx.Exec("write note of node", `INSERT INTO node_note (node, what, expires, error, since)
				VALUES (?, ?, ?, ?, ?)`,
				node, n.What, int64(n.Expires), Cut(n.Error, 512), int64(n.Since))
			if err != nil {
				return err
			}
		}
		return nil
	})
}
