package schedule

import (
	"context"
	"fmt"

	"go-crontab/job"
	"go-crontab/sql"
)

// PutGroup makes a group, or changes how many runs of its jobs may execute at once in the whole cluster. Slots that are
// added are used at once; those that are taken away are given up as runs end.
func (e *Editor) PutGroup(ctx context.Context, name string, slots int) (sql.Group, error) {
	if err := job.CheckGroup(name, slots); err != nil {
		return sql.Group{}, err
	}
	now := e.Session.Now()
	var g sql.Group
	woken := 0
	err := e.record(ctx, func(tx *sql.Tx) (*job.Entry, error) {
		old, err := tx.LockGroups([]string{name})
		if err != nil {
			return nil, err
		}
		was, there := old[name]
		if err := job.CheckPrecondition(ctx, there, 0); err != nil {
			return nil, err
		}
		var isNew bool
		if g, isNew, err = tx.PutGroup(name, slots, now); err != nil {
			return nil, err
		}
		if !there && !isNew { // somebody has made it in between; both are said to have made it
			if err := job.CheckPrecondition(ctx, true, 0); err != nil {
				return nil, err
			}
		}
		if woken, err = tx.WakeGroups([]sql.Group{g}, now); err != nil {
			return nil, err
		}
		line := &job.Entry{At: now, Action: job.ActionCreate, Kind: job.KindGroup, Ref: g.ID, Name: name, Became: slotsText(slots)}
		if there {
			line.Action, line.Was = job.ActionUpdate, slotsText(was.Slots)
		}
		if line.Was == line.Became {
			return nil, nil
		}
		return line, nil
	})
	if err != nil {
		return sql.Group{}, err
	}
	if woken > 0 {
		e.Soon()
	}
	return g, nil
}

// DeleteGroup deletes a group to which no job refers. job.InUse says which do.
func (e *Editor) DeleteGroup(ctx context.Context, name string) error {
	return e.record(ctx, func(tx *sql.Tx) (*job.Entry, error) {
		groups, err := tx.LockGroups([]string{name})
		if err != nil {
			return nil, err
		}
		g, ok := groups[name]
		if !ok {
			return nil, fmt.Errorf("group %q: %w", name, sql.ErrNotFound)
		}
		users, err := tx.Referrers(sql.RefGroup, name, 5)
		if err != nil {
			return nil, err
		}
		if len(users) > 0 {
			return nil, &job.InUse{Kind: "group", Name: name, By: users}
		}
		line := &job.Entry{Action: job.ActionDelete, Kind: job.KindGroup, Ref: g.ID, Name: name, Was: slotsText(g.Slots)}
		return line, tx.DeleteGroup(g.ID)
	})
}

// groupExists tells whether a job's group is there; it stays while the job's row is being written, because a delete
// looks for the job's reference under the group's lock.
func groupExists(tx *sql.Tx, name string) error {
	if name == "" {
		return nil
	}
	groups, err := tx.LockGroups([]string{name})
	if err != nil {
		return err
	}
	if _, ok := groups[name]; !ok {
		return job.Problems{{Field: "group", Message: fmt.Sprintf("there is no group %q; make it first, with the number of its slots", name)}}
	}
	return nil
}

// lockGroupsOf locks the groups that a change from one definition of a job to another is about: the new one, and the old
// one, whose slots are given back. It comes behind the job and before its tasks.
func lockGroupsOf(tx *sql.Tx, from, to *job.Spec) error {
	var names []string
	for _, s := range []*job.Spec{from, to} {
		if s.Group != "" && from.Group != to.Group {
			names = append(names, s.Group)
		}
	}
	_, err := tx.LockGroups(names)
	return err
}

// unread tells whether a stored definition could not be read: then there is little of it but the job's name. To what it
// refers nobody knows.
func unread(s *job.Spec) bool {
	return s.Name != "" && s.Schedule == "" && s.Schedules == nil && s.Every == 0 && s.At == nil
}

// refer writes down to which named objects a job refers that is changed from one definition to another, the job's row
// being written by this transaction. An object that is not there is a problem of its field.
func refer(tx *sql.Tx, id int64, from, to *job.Spec) error {
	if err := referToCalendars(tx, id, from, to); err != nil {
		return err
	}
	if err := referToSecrets(tx, id, from, to); err != nil {
		return err
	}
	if (from.Ping != nil) != (to.Ping != nil) || unread(from) {
		var names []string
		if to.Ping != nil {
			names = []string{""}
		}
		if err := tx.SetRefs(sql.RefPing, id, names); err != nil {
			return err
		}
	}
	if from.Group != to.Group || unread(from) {
		if err := groupExists(tx, to.Group); err != nil {
			return err
		}
		var names []string
		if to.Group != "" {
			names = []string{to.Group}
		}
		if err := tx.SetRefs(sql.RefGroup, id, names); err != nil {
			return err
		}
	}
	return nil
}
