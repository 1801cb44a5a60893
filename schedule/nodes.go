package schedule

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go-crontab/job"
	"go-crontab/sql"
)

// How long who cordons a node is kept waiting until its sessions have given back what they had prepared.
const (
	cordonWait = 8 * time.Second
	cordonLook = 50 * time.Millisecond
)

// Cordon has the node of a name take no new work, in all its lives, until it is uncordoned. With drain, somebody waits
// until it has none. What it executes runs to its end; what it only prepared goes back at once.
//
// The answer comes when the node's sessions have obeyed: from then on nothing starts there. One that is silent may not
// have obeyed within cordonWait; then its row says so, and it will at its next look.
func (e *Editor) Cordon(ctx context.Context, name, reason string, drain bool) error {
	if err := job.ValidateNode(name, reason); err != nil {
		return err
	}
	now, action := e.Session.Now(), job.ActionCordon
	if drain {
		action = job.ActionDrain
	}
	err := e.record(ctx, func(tx *sql.Tx) (*job.Entry, error) {
		was, err := tx.LockNode(name)
		if err != nil && !errors.Is(err, sql.ErrNotFound) {
			return nil, err
		}
		row := sql.NodeRow{Name: name, Draining: drain || was.Draining, Reason: reason, Who: job.ActorOf(ctx).Who, Since: was.Since}
		if was.Since == 0 {
			row.Since = now // what sessions obey is known by it
		} else if row.Draining == was.Draining && reason == was.Reason {
			return nil, nil
		}
		return &job.Entry{Action: action, Kind: job.KindNode, Name: name, Reason: reason}, tx.CordonNode(row)
	})
	if err != nil {
		return err
	}
	return e.obeyed(ctx, name)
}

// obeyed waits until the sessions of a node that is cordoned have given back what they had prepared.
func (e *Editor) obeyed(ctx context.Context, name string) error {
	for end := time.Now().Add(cordonWait); time.Now().Before(end); {
		sessions, err := e.DB.Sessions(ctx)
		if err != nil {
			return &sql.Unknown{Err: fmt.Errorf("the node is cordoned; whether it has obeyed is not known: %w", err)}
		}
		busy := func(s sql.SessionRow) bool { return s.Node == name && s.Cordoned != s.CordonSeen }
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

// Uncordon has a node take work again. One that is not cordoned stays as it is.
func (e *Editor) Uncordon(ctx context.Context, name string) error {
	if err := job.ValidateNode(name, ""); err != nil {
		return err
	}
	return e.record(ctx, func(tx *sql.Tx) (*job.Entry, error) {
		if _, err := tx.LockNode(name); err != nil {
			if errors.Is(err, sql.ErrNotFound) {
				err = nil
			}
			return nil, err
		}
		return &job.Entry{Action: job.ActionUncordon, Kind: job.KindNode, Name: name}, tx.UncordonNode(name)
	})
}

// DisableHandler has jobs with a handler not started on any node: their due times end skipped until it is enabled. It is
// answered when nothing starts any more that has not seen it.
func (e *Editor) DisableHandler(ctx context.Context, key, reason string) error {
	if err := job.ValidateHandler(key, reason); err != nil {
		return err
	}
	now := e.Session.Now()
	err := e.record(ctx, func(tx *sql.Tx) (*job.Entry, error) {
		was, err := tx.LockHandlerOff(key)
		if err != nil && !errors.Is(err, sql.ErrNotFound) {
			return nil, err
		}
		if err == nil && was.Reason == reason {
			return nil, nil
		}
		row := sql.HandlerOff{Handler: key, Reason: reason, Who: job.ActorOf(ctx).Who, Since: was.Since}
		if row.Since == 0 {
			row.Since = now
		}
		return &job.Entry{Action: job.ActionDisable, Kind: job.KindHandler, Name: key, Reason: reason}, tx.DisableHandler(row)
	})
	if err != nil {
		return err
	}
	// Also when there was nothing to change: who asks again must not be answered before who asked first.
	window, err := e.closeHandler(ctx, key)
	if err != nil {
		return &sql.Unknown{Err: fmt.Errorf("the change is made; a run that was starting may still begin: %w", err)}
	}
	return e.passed(ctx, window)
}

// closeHandler waits for the starts of jobs with a handler that have not seen that it is disabled, and returns until when
// something may be spawned for them. That it is must be committed: those starts hold places that are there by now, and those
// that begin later see it.
func (e *Editor) closeHandler(ctx context.Context, key string) (window job.Micros, err error) {
	all, err := e.DB.Places(ctx, 0)
	if err != nil {
		return 0, err
	}
	var places []int
	for _, p := range all {
		if sel, err := job.ParsePlace(p.Selector); err == nil && sel.Wants(job.HandlerLabel+key) {
			places = append(places, p.ID)
		}
	}
	err = e.DB.Tx(ctx, func(tx *sql.Tx) error {
		if err := tx.LockPlaces(places); err != nil {
			return err
		}
		window, err = tx.SpawnUntil(places)
		return err
	})
	return window, err
}

// EnableHandler has jobs with a handler started again. One that is not disabled stays as it is.
func (e *Editor) EnableHandler(ctx context.Context, key string) error {
	if err := job.ValidateHandler(key, ""); err != nil {
		return err
	}
	return e.record(ctx, func(tx *sql.Tx) (*job.Entry, error) {
		if _, err := tx.LockHandlerOff(key); err != nil {
			if errors.Is(err, sql.ErrNotFound) {
				err = nil
			}
			return nil, err
		}
		return &job.Entry{Action: job.ActionEnable, Kind: job.KindHandler, Name: key}, tx.EnableHandler(key)
	})
}
