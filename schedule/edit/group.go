package edit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"go-crontab/job"
	"go-crontab/sql"
	"go-crontab/sql/trip"
)

// PutGroup makes a group, or changes its slots and its rate. The slots bound how many runs of its
// jobs execute at once in the whole cluster. The rate bounds how many start in a period. New slots
// are used at once. Removed slots are given up as runs end.
func (e *Editor) PutGroup(ctx context.Context, want job.GroupSpec) (trip.Group, error) {
	if err := job.CheckGroup(want); err != nil {
		return trip.Group{}, err
	}
	g, woken, err := e.tryPutGroup(ctx, want)
	// If another transaction has just made the group, the next try finds the group.
	for try := 1; errors.Is(err, sql.ErrExists) && try < groupTries; try++ {
		g, woken, err = e.tryPutGroup(ctx, want)
	}
	if err != nil {
		return trip.Group{}, err
	}

	if woken > 0 {
		e.wake()
	}
	return g, nil
}

// groupTries bounds the tries when others make and delete the group at the same time.
const groupTries = 5

func (e *Editor) tryPutGroup(ctx context.Context, want job.GroupSpec) (g trip.Group, woken int, err error) {
	err = e.record(ctx, func(tx *sql.Tx, now job.Micros) (*job.Entry, error) {
		was, err := trip.LockGroup(tx, want.Name)
		if err != nil {
			return nil, err
		}
		if err := job.CheckPrecondition(ctx, was != nil, 0); err != nil {
			return nil, err
		}

		var line *job.Entry
		g, line, err = putGroup(tx, was, want, now)
		if err != nil {
			return nil, err
		}
		woken, err = trip.WakeGroups(tx, []*trip.Group{&g}, now)
		return line, err
	})
	return g, woken, err
}

// putGroup writes a group that the transaction has locked; was is nil for a new group. The audit
// line is nil if the group is unchanged.
func putGroup(
	tx *sql.Tx, was *trip.Group, want job.GroupSpec, now job.Micros,
) (g trip.Group, line *job.Entry, err error) {
	slots, rate := want.Limits()
	switch {
	case was == nil:
		g = trip.Group{Name: want.Name, Slots: slots, Rate: rate}
		line = &job.Entry{Action: job.ActionCreate}
		err = trip.InsertGroup(tx, &g, now)
	case was.Slots == slots && was.Rate == rate:
		return *was, nil, nil
	default:
		line = &job.Entry{Action: job.ActionUpdate, Was: groupText(was)}
		g = *was
		g.Slots, g.Rate = slots, rate
		err = trip.SetGroup(tx, &g, now)
	}

	line.Kind, line.Name, line.Became = job.KindGroup, want.Name, groupText(&g)

	line.Ref = int64(g.ID)
	return g, line, err
}

// groupText returns the audit text of a group.
func groupText(g *trip.Group) string {
	spec := job.GroupOf("", g.Slots, g.Rate)
	text, _ := json.Marshal(struct { // numbers and texts always encode
		Slots int    `json:"slots,omitempty"`
		Rate  string `json:"rate,omitempty"`
	}{spec.Slots, spec.Rate})
	return string(text)
}

// DeleteGroup deletes a group that no job names. If jobs name it, the error is job.InUse, with the
// names of some jobs.
func (e *Editor) DeleteGroup(ctx context.Context, name string) error {
	return e.record(ctx, func(tx *sql.Tx, _ job.Micros) (*job.Entry, error) {
		g, err := trip.LockGroup(tx, name)
		if err != nil {
			return nil, err
		}
		if g == nil {
			return nil, fmt.Errorf("group %q: %w", name, sql.ErrNotFound)
		}

		users, err := referrers(tx, trip.RefGroup, name, 5)
		if err != nil {
			return nil, err
		}
		if len(users) > 0 {
			return nil, &job.InUse{Kind: "group", Name: name, By: users}
		}

		line := &job.Entry{
			Action: job.ActionDelete, Kind: job.KindGroup, Ref: int64(g.ID), Name: name, Was: groupText(g),
		}
		return line, trip.DropGroup(tx, g.ID)
	})
}
