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

// Cordon waits up to cordonWait until the sessions of the node have given back their prepared
// runs. It looks every cordonLook.
const (
	cordonWait = 8 * time.Second
	cordonLook = 50 * time.Millisecond
)

// Cordon stops a node from taking new work until it is uncordoned. The cordon belongs to the
// node's name, so it survives restarts. drain also notes that an operator is waiting for the node
// to be empty. Executing runs go on to their ends; prepared runs go back at once.
//
// The answer comes once the node's sessions have obeyed: from then on nothing starts there. A
// session that does not answer may not have obeyed within cordonWait. It obeys when it next reads
// the cordon.
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
			row.Since = now // identifies this cordon to the sessions
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

// obeyed waits until the sessions of a cordoned node have given back their prepared runs.
func (e *Editor) obeyed(ctx context.Context, name string) error {
	busy := func(s sql.SessionRow) bool { return s.Node == name && s.Cordoned != s.CordonSeen }
	for end := time.Now().Add(cordonWait); time.Now().Before(end); {
		sessions, err := e.DB.Sessions(ctx)
		if err != nil {
			return &sql.Unknown{Err: fmt.Errorf("the node is cordoned, but may not have noticed yet: %w", err)}
		}
		if !slices.ContainsFunc(sessions, busy) {
			return nil
		}
		select {
		case <-ctx.Done():
			return &sql.Unknown{Err: fmt.Errorf("the node is cordoned, but may still start runs: %w", context.Cause(ctx))}
		case <-time.After(cordonLook):
		}
	}

	return nil
}

// Uncordon lets a node take work again. It does nothing if the node is not cordoned.
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

// cordonNode writes the row of a cordon.
func cordonNode(tx *sql.Tx, n trip.NodeRow) error {
	_, err := tx.Exec("cordon node", `
		INSERT INTO node (name, cordoned, draining, reason, who, since)
		VALUES (?, 1, ?, ?, ?, ?)
		ON DUPLICATE KEY UPDATE
			cordoned = 1, draining = VALUES(draining), reason = VALUES(reason), who = VALUES(who),
			since = VALUES(since)`,
		n.Name, n.Draining, sql.Cut(n.Reason, 512), sql.Cut(n.Who, 128), int64(n.Since))
	return err
}

// uncordonNode removes the row of a cordon.
func uncordonNode(tx *sql.Tx, name string) error {
	_, err := tx.Exec("uncordon node", "DELETE FROM node WHERE name = ?", name)
	return err
}
