package sql

import (
	"context"
	stdsql "database/sql"
	"strings"

	"go-crontab/job"
)

const folderColumns = "id, name, digest, past, applied, node"

func scanFolder(rows *stdsql.Rows) (f job.FolderState, err error) {
	var past string
	err = rows.Scan(&f.ID, &f.Name, &f.Digest, &past, &f.Applied, &f.Node)
	f.Past = strings.Fields(past)
	return f, err
}

// Folders reads what is known of the folders that nodes follow: of one by its name, or with "" of all.
func (db *DB) Folders(ctx context.Context, name string) ([]job.FolderState, error) {
	var out []job.FolderState
	err := db.query(ctx, "read folders", func(rows *stdsql.Rows) error {
		f, err := scanFolder(rows)
		out = append(out, f)
		return err
	}, "SELECT "+folderColumns+" FROM folder WHERE ? IN ('', name) ORDER BY name", name)
	if err != nil || len(out) == 0 {
		return nil, err
	}
	at := map[int64]*job.FolderState{}
	ids := make([]int64, len(out))
	for i := range out {
		at[out[i].ID], ids[i] = &out[i], out[i].ID
	}
	list, args := In(nil, ids)
	err = db.query(ctx, "read nodes of folders", func(rows *stdsql.Rows) error {
		var (
			id int64
			n  job.FolderNode
		)
		err := rows.Scan(&id, &n.Node, &n.Digest, &n.Held, &n.State, &n.Error, &n.Since, &n.Alive)
		at[id].Nodes = append(at[id].Nodes, n)
		return err
	}, "SELECT f.folder_id, f.node, f.digest, f.held, f.state, f.error, f.since, EXISTS (SELECT 1 FROM session s WHERE s.node = f.node) FROM folder_node f WHERE f.folder_id IN "+list+" ORDER BY f.folder_id, f.node", args...)
	return out, err
}

// LockFolder locks a folder, which is made if there is none, before anything else: of nodes that apply one at the same
// time one waits for the other. The nodes' lines are not read.
func (tx *Tx) LockFolder(name string) (f job.FolderState, err error) {
	if _, err = tx.Exec("make folder", "INSERT INTO folder (name, past) VALUES (?, '') ON DUPLICATE KEY UPDATE name = name", name); err != nil {
		return f, err
	}
	err = tx.query("lock folder", func(rows *stdsql.Rows) (err error) {
		f, err = scanFolder(rows)
		return err
	}, "SELECT "+folderColumns+" FROM folder WHERE name = ? FOR UPDATE", name)
	return f, err
}

// UpdateFolder writes what is applied of a folder that the transaction has locked.
func (tx *Tx) UpdateFolder(f *job.FolderState) error {
	_, err := tx.Exec("update folder", "UPDATE folder SET digest = ?, past = ?, applied = ?, node = ? WHERE id = ?",
		f.Digest, strings.Join(f.Past, " "), int64(f.Applied), Cut(f.Node, 128), f.ID)
	return err
}

// PutFolderNode writes a node's line of a folder, and removes those of nodes that are gone.
func (tx *Tx) PutFolderNode(id int64, n *job.FolderNode, gone []string) error {
	_, err := tx.Exec("write node of folder", "INSERT INTO folder_node (folder_id, node, digest, held, state, error, since) VALUES (?, ?, ?, ?, ?, ?, ?)"+
		" ON DUPLICATE KEY UPDATE digest = VALUES(digest), held = VALUES(held), state = VALUES(state), error = VALUES(error), since = VALUES(since)",
		id, n.Node, n.Digest, n.Held, string(n.State), Cut(n.Error, maxFolderError), int64(n.Since))
	if err != nil || len(gone) == 0 {
		return err
	}
	list, args := In([]any{id}, gone)
	_, err = tx.Exec("remove nodes of folder", "DELETE FROM folder_node WHERE folder_id = ? AND node IN "+list, args...)
	return err
}

// maxFolderError bounds what is kept of an error.
const maxFolderError = 4000
