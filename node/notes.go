package node

import (
	"context"
	"slices"
	"time"

	"go-crontab/internal/loop"
	"go-crontab/session"
	"go-crontab/sql"
)

// notePeriod is the time between two calls of Config.Notes.
const notePeriod = time.Minute

// noter keeps the notes of this node up to date. The notes tell the cluster about the node's
// certificate and its identity provider. Only changed notes are written. If we die before a write,
// the next session of the node writes them.
type noter struct {
	n       *Node
	session *session.Session
	written []sql.NodeNote
	begun   bool // written is known
}

func (t *noter) Run(ctx context.Context) error {
	return loop.Loop{
		First:  5 * time.Second,
		Period: notePeriod,
		Log:    t.n.log,
		Failed: "cannot note the state of the certificate and the OIDC issuer, trying again",
	}.Run(ctx, loop.Each(t.step))
}

func (t *noter) step(ctx context.Context) error {
	if !t.session.Fresh() {
		return loop.ErrSkipped
	}

	var gone []string
	if !t.begun {
		var err error
		if gone, err = t.begin(ctx); err != nil {
			return err
		}
	}

	var notes []sql.NodeNote
	if t.n.cfg.Notes != nil {
		notes = t.n.cfg.Notes(ctx)
	}
	now := t.session.Now()
	for i := range notes {
		notes[i].Since = now
		for _, old := range t.written {
			if old.What == notes[i].What && (old.Error == "") == (notes[i].Error == "") {
				notes[i].Since, notes[i].Error = old.Since, old.Error // the error with which the trouble began
			}
		}
	}

	if len(gone) > 0 || !slices.Equal(notes, t.written) {
		if err := t.n.api.WriteNodeNotes(ctx, t.n.cfg.Name, notes, gone); err != nil {
			return err
		}
	}
	t.written, t.begun = notes, true
	return nil
}

// begin reads the notes that this node wrote earlier. It also returns the nodes that are gone,
// because nobody else removes their notes.
func (t *noter) begin(ctx context.Context) (gone []string, err error) {
	all, err := t.n.api.NodeNotes(ctx)
	t.written = nil
	for _, old := range all {
		switch {
		case old.Node == t.n.cfg.Name:
			t.written = append(t.written, sql.NodeNote{
				What: old.What, Expires: old.Expires, Error: old.Error, Since: old.Since,
			})
		case !old.Alive:
			gone = append(gone, old.Node)
		}
	}
	return gone, err
}
