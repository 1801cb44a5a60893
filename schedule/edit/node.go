package edit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go-crontab/job"
	"go-crontab/sql"
	"go-crontab/sql/trip"
)

// How long a cordon waits until the sessions of its node have given back what they had prepared.
const (
	cordonWait = 8 * time.Second
	cordonLook = 50 * time.Millisecond
)

// Cordon has the node of a name take no new work, in all its lives, until it is uncordoned. With drain, somebody waits until it has
// none. What it executes runs to its end; what it only prepared goes back at once.
//
// The answer comes when the node's sessions have obeyed: from then on nothing starts there. A silent session may not have obeyed
// within cordonWait; then its row says so, and it will at its next look.
func (e *Editor) Cordon(ctx context.Context, name, reason string, drain bool) error {
	if err := job.ValidateNode(name, reason); err != nil {
		return err
	}
	action := job.ActionCordon
	if drain {
		action = job.ActionDrain
	}
	err := e.record(ctx, func(tx *sql.Tx, now job.Micros) (*job.Entry, error) {
		was, err := trip.LockNode(tx, name)
		if err != nil && !errors.Is(err, sql.ErrNotFound) {
			return nil, err
		}
		row := trip.NodeRow{
			Name: name, Draining: drain || was.Draining, Reason: reason, Who: job.ActorOf(ctx).Who, Since: was.Since,
		}
		if was.Since == 0 {
			row.Since = now // sessions know by it what they obey
		} else if row.Draining == was.Draining && reason == was.Reason {
			return nil, nil
		}
		return &job.Entry{Action: action, Kind: job.KindNode, Name: name, Reason: reason}, cordonNode(tx, row)
	})
	if err != nil {
		return err
	}
	return e.obeyed(ctx, name)
}

// obeyed waits until the sessions of a node that is cordoned have given back what they had prepared.
func (e *Editor) obeyed(ctx context.Context, name string) error {
	busy := func(s sql.SessionRow) bool { return s.Node == name && s.Cordoned != s.CordonSeen }
	for end := time.Now().Add(cordonWait); time.Now().Before(end); {
		sessions, err := e.DB.Sessions(ctx)
		if err != nil {
			return &sql.Unknown{Err: fmt.Errorf("the node is cordoned; whether it has obeyed is not known: %w", err)}
		}
		if !slices.ContainsFunc(sessions, busy) {
			return nil
		}
		select {
		case <-ctx.Done():
			return &sql.Unknown{Err: fmt.Errorf("the node is cordoned; it may still start something: %w", context.Cause(ctx))}
		case <-time.After(cordonLook):
		}
	}
	return nil
}

// Uncordon has a node take work again. A node that is not cordoned stays as it is.
func (e *Editor) Uncordon(ctx context.Context, name string) error {
	if err := job.ValidateNode(name, ""); err != nil {
		return err
	}
	return e.record(ctx, func(tx *sql.Tx, _ job.Micros) (*job.Entry, error) {
		_, err := trip.LockNode(tx, name)
		switch {
		case errors.Is(err, sql.ErrNotFound):
			return nil, nil
		case err != nil:
			return nil, err
		}
		return &job.Entry{Action: job.ActionUncordon, Kind: job.KindNode, Name: name}, uncordonNode(tx, name)
	})
}

// cordonNode says that a node is to take no new work.
func cordonNode(tx *sql.Tx, n trip.NodeRow) error {
	_, err := tx.Exec("cordon node", "INSERT INTO node (name, cordoned, draining, reason, who, since) VALUES (?, 1, ?, ?, ?, ?)"+
		" ON DUPLICATE KEY UPDATE cordoned = 1, draining = VALUES(draining), reason = VALUES(reason), who = VALUES(who), since = VALUES(since)",
		n.Name, n.Draining, sql.Cut(n.Reason, 512), sql.Cut(n.Who, 128), int64(n.Since))
	return err
}

// uncordonNode says nothing about a node any more.
func uncordonNode(tx *sql.Tx, name string) error {
	_, err := tx.Exec("uncordon node", "DELETE FROM node WHERE name = ?", name)
	return err
}
