package edit

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"go-crontab/job"
	"go-crontab/sql"
)

// NoteFolder writes the digest of a node's folder and the result of applying its files. It writes
// nothing if both are unchanged.
func (e *Editor) NoteFolder(ctx context.Context, name string, n job.FolderNode) error {
	f, err := folderNamed(ctx, e.DB, name)
	if err != nil {
		return err
	}
	was := f.NodeOf(n.Node)
	n.Held = was.Held
	if n.State == job.FolderApplied {
		n.Held = n.Digest
	}
	if was.Digest == n.Digest && was.Held == n.Held && was.State == n.State && was.Error == n.Error {
		return nil
	}
	n.Since = e.Session.Now()

	// A lost write does no harm. Each node writes only its own row, and writes it again if the row
	// is wrong.
	return e.DB.Tx(ctx, func(tx *sql.Tx) error {
		locked, err := lockFolder(tx, name)
		if err != nil {
			return err
		}
		left := slices.DeleteFunc(gone(&f, n.Since), func(node string) bool { return node == n.Node })
		return putFolderNode(tx, locked.ID, &n, left)
	})
}

// ForgetFolders removes the notes of a node about folders that it no longer follows. It keeps only
// the notes about folder name. An empty name means that the node follows no folder.
func (e *Editor) ForgetFolders(ctx context.Context, node, name string) error {
	all, err := Folders(e.DB.Reader(ctx), "")
	for _, f := range all {
		if f.Name == name || f.NodeOf(node).State == "" {
			continue
		}
		err = e.DB.Tx(ctx, func(tx *sql.Tx) error { return dropFolderNodes(tx, f.ID, []string{node}) })
		if err != nil {
			break
		}
	}
	return err
}

func folderNamed(ctx context.Context, db *sql.DB, name string) (job.FolderState, error) {
	found, err := Folders(db.Reader(ctx), name)
	if err != nil || len(found) == 0 {
		return job.FolderState{Name: name}, err
	}
	return found[0], nil
}

// folderNodeKept is the time for which the row of a node without a session is kept.
const folderNodeKept = 24 * time.Hour

// gone lists nodes without a session whose rows are older than folderNodeKept.
func gone(f *job.FolderState, now job.Micros) (out []string) {
	for _, n := range f.Nodes {
		if !n.Alive && now.Sub(n.Since) > folderNodeKept {
			out = append(out, n.Node)
		}
	}
	return out
}

// lookAtFolder reads the state of the folder whose files are to be applied. It returns errApplied
// if there is nothing to do.
func (a *applying) lookAtFolder(ctx context.Context) error {
	w := a.want.Folder
	if w == nil || a.want.DryRun {
		return nil
	}
	f, err := folderNamed(ctx, a.DB, w.Name)
	if err != nil {
		return err
	}
	a.folder = &f
	applied, err := f.Verdict(w.Node, w.Digest, a.now)
	if err == nil && applied {
		err = errApplied
	}
	return err
}

// writeFolder notes in the same transaction that the folder is applied. If several nodes apply the
// same files at once, the second node then finds nothing to do.
func (a *applying) writeFolder(tx *sql.Tx) (*job.Entry, error) {
	w := a.want.Folder
	f, err := lockFolder(tx, w.Name)
	if err != nil {
		return nil, err
	}
	if f.Digest != a.folder.Digest || f.Applied != a.folder.Applied {
		return nil, errAgain
	}

	line := &job.Entry{
		Action: job.ActionApply, Kind: job.KindFolder, Ref: f.ID, Name: w.Name, Became: digestText(w.Digest),
	}
	if f.Digest != "" {
		line.Was = digestText(f.Digest)
	}
	f.Advance(w, a.now)
	if err := updateFolder(tx, &f); err != nil {
		return nil, err
	}
	n := job.FolderNode{Node: w.Node, Digest: w.Digest, Held: w.Digest, State: job.FolderApplied, Since: a.now}
	return line, putFolderNode(tx, f.ID, &n, gone(a.folder, a.now))
}

func digestText(digest string) string {
	text, _ := json.Marshal(map[string]string{"digest": digest}) // cannot fail
	return string(text)
}

const folderColumns = "id, name, digest, past, applied, node"

func scanFolder(rows *sql.Rows) (f job.FolderState, err error) {
	var past string
	err = rows.Scan(&f.ID, &f.Name, &f.Digest, &past, &f.Applied, &f.Node)
	f.Past = strings.Fields(past)
	return f, err
}

// Folders reads the state of one folder by its name, or of all folders with an empty name.
func Folders(r sql.Reader, name string) ([]job.FolderState, error) {
	query := `
		SELECT ` + folderColumns + `
		FROM folder
		WHERE ? IN ('', name)
		ORDER BY name`
	out, err := sql.Select(r, "read folders", scanFolder, query, name)
	if err != nil || len(out) == 0 {
		return nil, err
	}
	at := map[int64]*job.FolderState{}
	ids := make([]int64, len(out))
	for i := range out {
		at[out[i].ID], ids[i] = &out[i], out[i].ID
	}

	list, args := sql.In(nil, ids)
	query = `
		SELECT f.folder_id, f.node, f.digest, f.held, f.state, f.error, f.since,
			EXISTS (SELECT 1 FROM session s WHERE s.node = f.node)
		FROM folder_node f
		WHERE f.folder_id IN ` + list + `
		ORDER BY f.folder_id, f.node`
	err = sql.Each(r, "read nodes of folders", func(rows *sql.Rows) error {
		var (
			id int64
			n  job.FolderNode
		)
		err := rows.Scan(&id, &n.Node, &n.Digest, &n.Held, &n.State, &n.Error, &n.Since, &n.Alive)
		at[id].Nodes = append(at[id].Nodes, n)
		return err
	}, query, args...)
	return out, err
}

// lockFolder locks the row of a folder, and inserts it if necessary. It takes the first lock of
// the transaction, so nodes that apply the same folder wait for each other here. It does not read
// the rows of the nodes.
func lockFolder(tx *sql.Tx, name string) (f job.FolderState, err error) {
	_, err = tx.Exec("make folder", `
		INSERT INTO folder (name, past)
		VALUES (?, '')
		ON DUPLICATE KEY UPDATE name = name`, name)
	if err != nil {
		return f, err
	}
	err = sql.Each(tx, "lock folder", func(rows *sql.Rows) (err error) {
		f, err = scanFolder(rows)
		return err
	}, "SELECT "+folderColumns+" FROM folder WHERE name = ? FOR UPDATE", name)
	return f, err
}

// updateFolder writes the state of a locked folder.
func updateFolder(tx *sql.Tx, f *job.FolderState) error {
	_, err := tx.Exec("update folder", "UPDATE folder SET digest = ?, past = ?, applied = ?, node = ? WHERE id = ?",
		f.Digest, strings.Join(f.Past, " "), int64(f.Applied), sql.Cut(f.Node, 128), f.ID)
	return err
}

// putFolderNode writes a node's row for a folder, and removes the rows of absent nodes.
func putFolderNode(tx *sql.Tx, id int64, n *job.FolderNode, gone []string) error {
	_, err := tx.Exec("write node of folder", `
		INSERT INTO folder_node (folder_id, node, digest, held, state, error, since)
		VALUES (?, ?, ?, ?, ?, ?, ?)
		ON DUPLICATE KEY UPDATE
			digest = VALUES(digest), held = VALUES(held), state = VALUES(state), error = VALUES(error),
			since = VALUES(since)`,
		id, n.Node, n.Digest, n.Held, string(n.State), sql.Cut(n.Error, maxFolderError), int64(n.Since))
	if err != nil || len(gone) == 0 {
		return err
	}
	return dropFolderNodes(tx, id, gone)
}

func dropFolderNodes(tx *sql.Tx, id int64, nodes []string) error {
	list, args := sql.In([]any{id}, nodes)
	_, err := tx.Exec("remove nodes of folder", "DELETE FROM folder_node WHERE folder_id = ? AND node IN "+list, args...)
	return err
}

// maxFolderError bounds the stored text of an error.
const maxFolderError = 4000
