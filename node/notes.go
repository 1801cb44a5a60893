package node

import (
	"context"
	"slices"
	"time"

	"go-crontab/internal/loop"
	"go-crontab/session"
	"go-crontab/sql"
)

// notePeriod is the time between two checks of what only the node itself can see.
const notePeriod = time.Minute

// noter keeps the notes of this node up to date, which tell the cluster about its certificate and
// its identity provider. It writes only changes. If we die in between, the next session of the node
// writes them again.
type noter struct {
	n       *Node
	session *session.Session
	written []sql.NodeNote
	begun   bool // the first notes of this session are written
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

	var notes []sql.NodeNote
	if t.n.cfg.Notes != nil {
		notes = t.n.cfg.Notes(ctx)
	}
	now := t.session.Now()
	for i := range notes {
		notes[i].Since = now
		for _, old := range t.written {
			if old.What == notes[i].What && (old.Error == "") == (notes[i].Error == "") {
				notes[i].Since, notes[i].Error = old.Since, old.Error // the error that it began with
			}
		}
	}
	if t.begun && slices.Equal(notes, t.written) {
		return nil
	}

	// Notes of nodes that are gone would stay for ever.
	all, err := t.n.api.NodeNotes(ctx)
	if err != nil {
		return err
	}
	var gone []string
	for _, old := range all {
		if !old.Alive && old.Node != t.n.cfg.Name {
			gone = append(gone, old.Node)
		}
	}
	if err := t.n.api.WriteNodeNotes(ctx, t.n.cfg.Name, notes, gone); err != nil {
		return err
	}
	t.written, t.begun = notes, true
	return nil
}
