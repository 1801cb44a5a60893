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

	"go-crontab/internal/loop"
	"go-crontab/job"
	"go-crontab/session"
	"go-crontab/sql"
)

// watermark detects that a backup was restored: the database is older than the state that this
// node has worked with. The database has forgotten which runs were started since the backup, so
// these runs would start again. So the node starts nothing, and kills its commands, whose rows are
// outdated. Run returns sql.ErrRefuseJoin: an operator must decide (migrate --after-restore). The
// node also stores the mark in its state folder, for its next process.
type watermark struct {
	mu   sync.Mutex
	seen sql.Watermark
	file string // "": not stored
	err  error  // the reason why this node must not continue
}

// watermarkPeriod is the pause between looks; every watermarkLooks-th look raises the mark. A
// restore that loses only a few raises is not noticed, see sql.Watermark.Lost. If a backup is
// restored under a live node, the node may start runs that are due in the restored database, until
// its next look. So nodes must be stopped before a restore.
var watermarkPeriod = 2 * time.Second

const watermarkLooks = 5

// loadWatermark reads the mark that an earlier process has stored. An unreadable file counts as no
// mark.
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

// look compares the mark in the database with the highest one seen.
func (w *watermark) look(m sql.Watermark) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil || m.Epoch == "" { // a database without an epoch proves nothing
		return w.err
	}

	if m.Lost(w.seen) {
		w.err = fmt.Errorf(
			"%w: the database was restored: its data is as of %s, and this node has seen data as of %s. "+
				"Runs since then are missing and would start again, so this node starts nothing. "+
				"To use this database, stop all nodes and run: go-crontab migrate --after-restore "+
				"(docs/backup.md says what may repeat)",
			sql.ErrRefuseJoin, clockText(m.At), clockText(w.seen.At))
		return w.err
	}

	if w.seen.Epoch != m.Epoch || m.N > w.seen.N { // a slightly lower mark is tolerated; the higher one stays
		w.seen = m.After(w.seen)
		w.save()
	}

	return nil
}

func clockText(at job.Micros) string { return at.Time().UTC().Format(time.RFC3339) }

// save stores the mark for the next process. If we die in the middle, or the disk is full, the
// next process reads the previous mark, which is a little lower.
func (w *watermark) save() {
	if w.file == "" {
		return
	}
	text, err := json.Marshal(w.seen)
	if err == nil && os.WriteFile(w.file+".new", text, 0o600) == nil {
		_ = os.Rename(w.file+".new", w.file)
	}
}

// failed returns the reason why the node must not continue, or nil.
func (w *watermark) failed() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// checkWatermark refuses to join a database that is older than the state this node has worked
// with.
func (n *Node) checkWatermark(ctx context.Context) error {
	m, err := n.db.ReadWatermark(ctx)
	if err != nil {
		return err
	}
	return n.watermark.look(m)
}

// watcher compares the watermark on every node, and raises it on the first node.
type watcher struct {
	n       *Node
	session *session.Session
	lookout *lookout
	looks   int
}

// Run watches until ctx ends. If the database turns out to be older, the session is lost and Run
// ends.
func (w *watcher) Run(ctx context.Context) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)

	return loop.Loop{
		Period: watermarkPeriod,
		Log:    w.n.log,
		Failed: "cannot read the watermark of the database, trying again",
	}.Run(ctx, loop.Each(func(ctx context.Context) error {
		err := w.step(ctx)
		if errors.Is(err, sql.ErrRefuseJoin) {
			w.session.Lose(err)
			stop(err)
		}
		return err
	}))
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

	// If we die after this, or the commit is unknown, the next look sees the result.
	return w.n.db.RaiseWatermark(ctx, m, w.session.Now())
}
