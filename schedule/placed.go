package schedule

import (
	"fmt"
	"slices"

	"go-crontab/job"
	"go-crontab/sql"
)

// elsewhere tells whether a job, whose row is locked, is not for this node: it was edited after the task was claimed.
func (s *Starter) elsewhere(j *sql.JobRow) (place int, is bool) {
	if j == nil {
		return 0, false
	}
	mine, _ := s.Places.takes(j.Place)
	return j.Place, !mine
}

// handOver gives a task that is locked and prepared here back to idle, for the nodes that its job now wants.
func (d *decision) handOver(tx *sql.Tx) error {
	ids := []int64{d.task.ID}
	if err := tx.PlaceTasks(d.place, ids); err != nil {
		return err
	}
	return tx.Free(ids)
}

// handlersOff tells which handlers of jobs are disabled. Jobs without one cost nothing. Who has disabled a handler locks the
// places of its jobs, which are held here until the start is committed, so that it is answered when no start is under way
// any more that has not seen it.
func handlersOff(tx *sql.Tx, jobs map[int64]*sql.JobRow) (map[string]*sql.HandlerOff, error) {
	var keys []string
	var places []int
	for _, j := range jobs {
		if key := j.Spec.Handler; key != "" && j.SpecErr == nil {
			keys, places = append(keys, key), append(places, j.Place)
		}
	}
	if len(keys) == 0 {
		return nil, nil
	}
	slices.Sort(keys)
	slices.Sort(places)
	if err := tx.HoldPlaces(slices.Compact(places)); err != nil {
		return nil, err
	}
	found, err := tx.HandlersOff(slices.Compact(keys))
	out := make(map[string]*sql.HandlerOff, len(found))
	for key, off := range found {
		out[key] = &off
	}
	return out, err
}

// disabled says why jobs with a handler are not started.
func disabled(off *sql.HandlerOff) string {
	s := fmt.Sprintf("handler %s is disabled", off.Handler)
	if off.Who != "" {
		s += " by " + off.Who
	}
	if off.Reason != "" {
		s += ": " + off.Reason
	}
	return s
}

// placeOf returns the number of what a definition wants of nodes, which is written if it is new.
func placeOf(tx *sql.Tx, spec *job.Spec) (int, error) {
	sel, err := spec.Place()
	if err != nil {
		return 0, job.Problems{{Field: "selector", Message: err.Error()}}
	}
	return tx.PlaceID(sel.String())
}

// move gives a job the place of its new definition, and its live tasks that and the new priority, but for those that
// execute and those that are withdrawn.
func move(tx *sql.Tx, j *sql.JobRow, spec *job.Spec, live []sql.TaskRow, withdrawn func(sql.TaskRow) bool) (err error) {
	if j.Place, err = placeOf(tx, spec); err != nil {
		return err
	}
	stay := slices.DeleteFunc(slices.Clone(live), func(t sql.TaskRow) bool { return t.State == job.Executing || withdrawn(t) })
	if err := tx.RankTasks(spec.Priority, stay); err != nil {
		return err
	}
	return tx.MoveTasks(j.Place, stay)
}
