package edit

import (
	"context"
	"encoding/json"
	"slices"
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
		locked, err := tx.LockFolder(name)
		if err != nil {
			return err
		}
		left := slices.DeleteFunc(gone(&f, n.Since), func(node string) bool { return node == n.Node })
		return tx.PutFolderNode(locked.ID, &n, left)
	})
}

func folderNamed(ctx context.Context, db *sql.DB, name string) (job.FolderState, error) {
	found, err := db.Folders(ctx, name)
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
	f, err := tx.LockFolder(w.Name)
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
	if err := tx.UpdateFolder(&f); err != nil {
		return nil, err
	}
	n := job.FolderNode{Node: w.Node, Digest: w.Digest, Held: w.Digest, State: job.FolderApplied, Since: a.now}
	return line, tx.PutFolderNode(f.ID, &n, gone(a.folder, a.now))
}

func digestText(digest string) string {
	text, _ := json.Marshal(map[string]string{"digest": digest}) // cannot fail
	return string(text)
}
