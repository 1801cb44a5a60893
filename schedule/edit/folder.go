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

// NoteFolder writes down what a node's folder holds and what became of it, if that is news.
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

	// The line is the node's own, and it is written again when it is found to be another: nothing is lost with it.
	return e.DB.Tx(ctx, func(tx *sql.Tx) error {
		locked, err := lockFolder(tx, name)
		if err != nil {
			return err
		}
		left := slices.DeleteFunc(gone(&f, n.Since), func(node string) bool { return node == n.Node })
		return putFolderNode(tx, locked.ID, &n, left)
	})
}

func folderNamed(ctx context.Context, db *sql.DB, name string) (job.FolderState, error) {
	found, err := Folders(db.Reader(ctx), name)
	if err != nil || len(found) == 0 {
		return job.FolderState{Name: name}, err
	}
	return found[0], nil
}

// folderNodeKept is how long the line of a node is kept that has no session.
const folderNodeKept = 24 * time.Hour

// gone lists the nodes that have not followed a folder for a long time.
func gone(f *job.FolderState, now job.Micros) (out []string) {
	for _, n := range f.Nodes {
		if !n.Alive && now.Sub(n.Since) > folderNodeKept {
			out = append(out, n.Node)
		}
	}
	return out
}

// lookAtFolder reads what is known of the folder whose files are to be applied, and whether there is anything to do.
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

// writeFolder writes down that the folder is applied, in the transaction that does it. Of nodes that come with the same at the same
// time the others see it then, and have nothing to do.
func (a *applying) writeFolder(tx *sql.Tx) (*job.Entry, error) {
	w := a.want.Folder
	f, err := lockFolder(tx, w.Name)
	if err != nil {
		return nil, err
	}
	if f.Digest != a.folder.Digest || f.Applied != a.folder.Applied {
		return nil, errAgain
	}

	line := &job.Entry{Action: job.ActionApply, Kind: job.KindFolder, Ref: f.ID, Name: w.Name, Became: digestText(w.Digest)}
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

// Folders reads what is known of the folders that nodes follow: of one by its name, or with "" of all.
func Folders(r sql.Reader, name string) ([]job.FolderState, error) {
	out, err := sql.Select(r, "read folders", scanFolder, "SELECT "+folderColumns+" FROM folder WHERE ? IN ('', name) ORDER BY name", name)
	if err != nil || len(out) == 0 {
		return nil, err
	}
	at := map[int64]*job.FolderState{}
	ids := make([]int64, len(out))
	for i := range out {
		at[out[i].ID], ids[i] = &out[i], out[i].ID
	}
	list, args := sql.In(nil, ids)
	err = sql.Each(r, "read nodes of folders", func(rows *sql.Rows) error {
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

// lockFolder locks a folder, which is made if there is none, before anything else: of nodes that apply one at the same
// time one waits for the other. The nodes' lines are not read.
func lockFolder(tx *sql.Tx, name string) (f job.FolderState, err error) {
	if _, err = tx.Exec("make folder", "INSERT INTO folder (name, past) VALUES (?, '') ON DUPLICATE KEY UPDATE name = name", name); err != nil {
		return f, err
	}
	err = sql.Each(tx, "lock folder", func(rows *sql.Rows) (err error) {
		f, err = scanFolder(rows)
		return err
	}, "SELECT "+folderColumns+" FROM folder WHERE name = ? FOR UPDATE", name)
	return f, err
}

// updateFolder writes what is applied of a folder that the transaction has locked.
func updateFolder(tx *sql.Tx, f *job.FolderState) error {
	_, err := tx.Exec("update folder", "UPDATE folder SET digest = ?, past = ?, applied = ?, node = ? WHERE id = ?",
		f.Digest, strings.Join(f.Past, " "), int64(f.Applied), sql.Cut(f.Node, 128), f.ID)
	return err
}

// putFolderNode writes a node's line of a folder, and removes those of nodes that are gone.
func putFolderNode(tx *sql.Tx, id int64, n *job.FolderNode, gone []string) error {
	_, err := tx.Exec("write node of folder", "INSERT INTO folder_node (folder_id, node, digest, held, state, error, since) VALUES (?, ?, ?, ?, ?, ?, ?)"+
		" ON DUPLICATE KEY UPDATE digest = VALUES(digest), held = VALUES(held), state = VALUES(state), error = VALUES(error), since = VALUES(since)",
		id, n.Node, n.Digest, n.Held, string(n.State), sql.Cut(n.Error, maxFolderError), int64(n.Since))
	if err != nil || len(gone) == 0 {
		return err
	}
	list, args := sql.In([]any{id}, gone)
	_, err = tx.Exec("remove nodes of folder", "DELETE FROM folder_node WHERE folder_id = ? AND node IN "+list, args...)
	return err
}

// maxFolderError bounds what is kept of an error.
const maxFolderError = 4000
