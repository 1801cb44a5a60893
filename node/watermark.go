package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"go-crontab/job"
	"go-crontab/session"
	"go-crontab/sql"
)

// watermark notices that the database is an older one than this node has worked with: somebody has
// restored a backup. What was started since then is not known any more, and would be started again.
// So the node starts nothing: it kills its commands, whose rows are of the past, and ends with
// sql.ErrRefuseJoin, until a person has said what is to be done (migrate --after-restore). What it
// has seen stands in its state folder too, for its next life.
type watermark struct {
	mu   sync.Mutex
	seen sql.Watermark
	file string // "": only this life knows
	err  error  // why this node must not go on
}

// watermarkPeriod is between looks, and after so many of them it is raised. Restores that lose less
// than some raisings are not noticed, see sql.Watermark.Lost. Between a restore below a node that
// lives and its next look, it may start what the restored database says is due: that is why nodes
// are to be stopped before.
var watermarkPeriod = 2 * time.Second

const watermarkLooks = 5

// loadWatermark reads what an earlier life has seen. What cannot be read is as good as none.
func loadWatermark(dir string) *watermark {
	w := &watermark{}
	if dir == "" {
		return w
	}
	w.file = filepath.Join(dir, "watermark.json")
	if text, err := os.ReadFile(w.file); err == nil {
		_ = json.Unmarshal(text, &w.seen)
	}
	return w
}

// look holds what the database says against what was seen.
func (w *watermark) look(m sql.Watermark) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil || m.Epoch == "" { // a database without one says nothing
		return w.err
	}

	if m.Lost(w.seen) {
		w.err = fmt.Errorf(
			"%w: the database is older than what this node has seen: it is as of %s, and the node has seen it as of "+
				"%s. It was restored, and does not know what was done since then, "+
				"so that due times from then on would be started again. Nothing is started. Stop all nodes, and say "+
				"that it is to be used: go-crontab migrate --after-restore; docs/backup.md says what may repeat",
			sql.ErrRefuseJoin, clockText(m.At), clockText(w.seen.At))
		return w.err
	}

	if w.seen.Epoch != m.Epoch || m.N > w.seen.N { // within the slack the higher one counts
		w.seen = m.After(w.seen)
		w.save()
	}

	return nil
}

func clockText(at job.Micros) string { return at.Time().UTC().Format(time.RFC3339) }

// save keeps it for the next life. If we die in the middle, or the disk is full, that life knows
// the one before, which is a little lower.
func (w *watermark) save() {
	if w.file == "" {
		return
	}
	text, err := json.Marshal(w.seen)
	if err == nil && os.WriteFile(w.file+".new", text, 0o600) == nil {
		_ = os.Rename(w.file+".new", w.file)
	}
}

// failed is why the node must not go on, or nil.
func (w *watermark) failed() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// checkWatermark is before a node joins.
func (n *Node) checkWatermark(ctx context.Context) error {
	m, err := n.db.ReadWatermark(ctx)
	if err != nil {
		return err
	}
	return n.watermark.look(m)
}

// watcher raises the watermark, on the first node, and looks at it, on all.
type watcher struct {
	n       *Node
	session *session.Session
	lookout *lookout
	looks   int
}

// Run watches until ctx ends, or the database turns out to be an older one: then the session is
// lost.
func (w *watcher) Run(ctx context.Context) error {
	for {
		if err := w.step(ctx); errors.Is(err, sql.ErrRefuseJoin) {
			w.session.Lose(err) // first: whoever reads the log may have stopped
			w.n.log.Error("the database was restored", "error", err)
			return err
		} else if err != nil && ctx.Err() == nil {
			w.n.log.Warn("cannot look how far the database is, trying again", "error", err)
		}

		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(watermarkPeriod):
		}
	}
}

func (w *watcher) step(ctx context.Context) error {
	m, known := w.lookout.Watermark()
	if !known {
		var err error
		if m, err = w.n.db.ReadWatermark(ctx); err != nil {
			return err
		}
	}

	if err := w.n.watermark.look(m); err != nil || m.Epoch == "" || !w.session.Fresh() {
		return err
	}

	w.looks++
	if index, _ := w.session.Share(); index != 0 || w.looks%watermarkLooks != 1 {
		return nil
	}

	// If we die behind it, or the commit is unknown, the next look sees what stands.
	return w.n.db.RaiseWatermark(ctx, m, w.session.Now())
}
