package edit

import (
	"encoding/json"
	"maps"
	"slices"
	"time"

	"go-crontab/job"
	"go-crontab/sql"
	"go-crontab/sql/trip"
)

// decide locks the jobs, reads the runs ahead, and judges. It returns the end of the last spawn
// window of the jobs.
func decide(tx *sql.Tx, views []*view, b batch, last bool) ([]verdict, *chains, job.Micros, error) {
	linked, err := link(tx, views)
	if err != nil {
		return nil, nil, 0, err
	}
	if err := lockCalendars(tx, views); err != nil {
		return nil, nil, 0, err
	}
	problems, err := lackingGroups(tx, views)
	if err != nil {
		return nil, nil, 0, err
	}
	locked, ahead, err := lockJobs(tx, views, linked.ids(), last, b.now)
	if err != nil {
		return nil, nil, 0, err
	}
	if linked.moved(locked) {
		if last {
			return nil, nil, 0, ErrLocked
		}
		return nil, nil, 0, errAgain
	}

	if err := readLive(tx, views); err != nil {
		return nil, nil, 0, err
	}

	verdicts := make([]verdict, len(views))
	for i, v := range views {
		d := judge(v, locked[v.ID], ahead[v.ID], b.now)
		switch {
		case d.again && !last:
			return nil, nil, 0, errAgain
		case d.again && locked[v.ID] == nil:
			d = d.refuse(ErrLocked)
		case d.again:
			d = d.refuse(errAgain)
		case d.Result == job.BulkChanged && problems[v] != nil:
			d = d.refuse(problems[v])
		case d.Result == job.BulkChanged && v.def != nil && linked.problems[v.def] != nil:
			d = d.refuse(linked.problems[v.def])
		}
		verdicts[i] = d
	}
	if err := refuseOthers(tx, verdicts, b.all); err != nil {
		return nil, nil, 0, err
	}
	until, err := trip.SpawnBy(tx, runningOf(views, locked), b.now+job.SpawnWindow)
	return verdicts, linked, until, err
}

// readLive finds the jobs that are not over, among the jobs that must have finished. The rows of
// the jobs are locked, so no run of their schedules begins or is tried again.
func readLive(tx *sql.Tx, views []*view) error {
	var ids []int64
	for _, v := range views {
		if v.Finished {
			ids = append(ids, v.ID)
		}
	}
	live, err := trip.LiveAmong(tx, ids)
	for _, v := range views {
		v.live = live[v.ID]
	}
	return err
}

// lockJobs locks the jobs of the views, and the jobs that they begin to follow. It reads the runs
// of the views' jobs that have not begun. For a job with a single due time in the past, it also
// reads the run of that due time.
func lockJobs(
	tx *sql.Tx, views []*view, followed []int64, last bool, now job.Micros,
) (locked map[int64]*trip.JobRow, ahead map[int64][]trip.Ahead, err error) {
	var ids, overdue, delayed []int64
	earliest := now
	for _, v := range views {
		switch {
		case v.seen == nil || v.problem != nil && v.Action != recalendar:
			continue
		case v.def != nil && v.def.At != nil && len(v.next.dues) > 0 && v.next.dues[0] <= now:
			overdue, earliest = append(overdue, v.ID), min(earliest, v.next.dues[0]-1)
		}
		ids = append(ids, v.ID)
		if v.def != nil && v.def.Delay != 0 {
			delayed = append(delayed, v.ID)
		}
	}
	slices.Sort(ids)

	all := slices.Compact(slices.Sorted(slices.Values(slices.Concat(ids, followed))))
	if locked, err = lock(tx, all, last); err != nil {
		return nil, nil, err
	}
	latest, err := trip.LastScheduled(tx, delayed, now)
	if err != nil {
		return nil, nil, err
	}
	for _, v := range views {
		if l, there := latest[v.ID]; there {
			v.latest = &l
		}
	}
	if ahead, err = trip.RunsAhead(tx, ids, now); err != nil {
		return nil, nil, err
	}
	past, err := trip.RunsAhead(tx, overdue, earliest)
	maps.Copy(ahead, past)
	return locked, ahead, err
}

// refuseOthers refuses changes that exceed a limit of their app or name a missing secret. With all,
// the first refusal is the error.
func refuseOthers(tx *sql.Tx, verdicts []verdict, all bool) error {
	if err := limitJobs(tx, verdicts); err != nil {
		return err
	}
	if err := lackSecrets(tx, verdicts); err != nil {
		return err
	}
	if err := keepFollowed(tx, verdicts); err != nil {
		return err
	}
	for i := range verdicts {
		if all && verdicts[i].Err != nil {
			return verdicts[i].Err
		}
	}
	return nil
}

// runningOf lists the runs that hold the turns of the changed jobs.
func runningOf(views []*view, locked map[int64]*trip.JobRow) (runs []int64) {
	for _, v := range views {
		if j := locked[v.ID]; j != nil && j.Running != 0 {
			runs = append(runs, j.Running)
		}
	}
	return runs
}

// lock locks rows of jobs and skips rows that are locked already. At the last try for a single
// job, it waits for the lock.
func lock(tx *sql.Tx, ids []int64, last bool) (map[int64]*trip.JobRow, error) {
	if !last || len(ids) != 1 {
		return trip.LockToEdit(tx, ids)
	}
	locked, err := trip.AwaitToEdit(tx, ids[0])
	if sql.IsLockWait(err) {
		err = ErrLocked
	}
	return locked, err
}

// lockCalendars writes the rows of the calendars that new definitions name. So a concurrent change
// of a calendar either comes first, or finds the job of this change. If a calendar has changed
// since the due times were computed, the error is errAgain. lockCalendars skips recalendar
// changes, because the changed calendar is locked already.
func lockCalendars(tx *sql.Tx, views []*view) error {
	names := map[string]bool{}
	for _, v := range views {
		if v.names() {
			for _, name := range v.def.Calendars {
				names[name] = true
			}
		}
	}
	if len(names) == 0 {
		return nil
	}

	found, err := nameCalendars(tx, slices.Sorted(maps.Keys(names)))
	if err != nil {
		return err
	}
	calendars := map[string]*job.Calendar{}
	for _, c := range found {
		calendars[c.Name()] = c
	}
	for _, v := range views {
		if v.names() && digestsOf(v.def, calendars) != v.calendars {
			return errAgain
		}
	}
	return nil
}

// names reports whether the change may make its job refer to a new group, calendar or secret.
func (v *view) names() bool { return v.def != nil && v.problem == nil && v.Action != recalendar }

// write writes the verdicts to the rows. Each repetition of the transaction mints new ids.
func write(tx *sql.Tx, s Session, verdicts []verdict, linked *chains, b batch) ([]Done, error) {
	var created []*trip.JobRow
	var rows []trip.JobRow
	var back []int64
	var counted []trip.Counted
	for i := range verdicts {
		v := &verdicts[i]
		switch {
		case v.Result != job.BulkChanged:
			continue
		case v.Action == job.ActionCreate:
			created = append(created, &v.row)
			continue
		}
		rows = append(rows, v.row)
		for _, a := range v.takeBack {
			back = append(back, a.Run)
		}
		if v.counted != nil {
			counted = append(counted, *v.counted)
		}
	}

	id := s.Mint(max(1, len(counted)))
	for i := range counted {
		counted[i].Run = id + int64(i)
	}

	// Write jobs before runs, as every transaction does: see the lock order.
	if err := trip.WriteJobs(tx, rows); err != nil {
		return nil, err
	}
	if err := trip.InsertJobs(tx, created); err != nil {
		return nil, err
	}
	if err := trip.TakeBack(tx, back); err != nil {
		return nil, err
	}
	if err := trip.InsertCounted(tx, counted, b.now); err != nil {
		return nil, err
	}
	if err := writeDefinitions(tx, verdicts, b); err != nil {
		return nil, err
	}
	if err := writeChains(tx, verdicts, linked); err != nil {
		return nil, err
	}
	if err := writeListed(tx, verdicts); err != nil {
		return nil, err
	}
	if err := writePauses(tx, verdicts, b); err != nil {
		return nil, err
	}

	done := make([]Done, len(verdicts))
	for i := range verdicts {
		verdicts[i].ID = verdicts[i].jobID()
		done[i] = verdicts[i].Done
	}
	return done, nil
}

// jobID returns the id of the job, even of a new one.
func (v *verdict) jobID() int64 {
	if v.Action == job.ActionCreate {
		return v.row.ID
	}
	return v.view.ID
}

// writeDefinitions writes new versions of jobs, and their references.
func writeDefinitions(tx *sql.Tx, verdicts []verdict, b batch) error {
	var versions []trip.Version
	var refs []trip.Ref
	var referring, woken []int64
	for i := range verdicts {
		v := &verdicts[i]
		if v.Result != job.BulkChanged {
			continue
		}
		id := v.jobID()
		if v.wake {
			woken = append(woken, id)
		}
		if v.def != nil {
			versions = append(versions, trip.Version{
				JobID: id, Number: v.row.Version, Text: v.text, Calendars: v.calendars, Who: b.actor.Who,
			})
		}

		switch became := refsOf(v.def, id); {
		case v.Action == job.ActionDelete:
			referring = append(referring, id)
		case v.def != nil && (v.was == nil && v.Action != job.ActionCreate || !slices.Equal(became, refsOf(v.was, id))):
			referring, refs = append(referring, id), append(refs, became...)
		}
	}

	if err := trip.InsertVersions(tx, versions, b.now); err != nil {
		return err
	}
	if err := trip.SetRefs(tx, referring, refs); err != nil {
		return err
	}
	_, err := trip.WakeAll(tx, woken, b.now)
	return err
}

// refsOf lists the references of a definition.
func refsOf(s *job.Spec, id int64) (refs []trip.Ref) {
	if s == nil {
		return nil
	}

	if s.Group != "" {
		refs = append(refs, trip.Ref{Kind: trip.RefGroup, Name: s.Group, JobID: id})
	}

	for _, name := range s.Calendars {
		refs = append(refs, trip.Ref{Kind: trip.RefCalendar, Name: name, JobID: id})
	}

	for _, name := range job.SecretNames(s.SecretUses()) {
		refs = append(refs, trip.Ref{Kind: trip.RefSecret, Name: string(name), JobID: id})
	}

	if s.Handler != "" {
		refs = append(refs, trip.Ref{Kind: trip.RefHandler, Name: s.Handler, JobID: id})
	}

	var upstreams []string
	for _, n := range s.Upstreams() {
		upstreams = append(upstreams, n.Name)
	}
	slices.Sort(upstreams)
	for _, name := range slices.Compact(upstreams) { // jobs of two apps may have one name
		refs = append(refs, trip.Ref{Kind: trip.RefUpstream, Name: name, JobID: id})
	}

	if s.Manual {
		refs = append(refs, trip.Ref{Kind: trip.RefManual, JobID: id})
	}

	if s.Delay != 0 {
		refs = append(refs, trip.Ref{Kind: trip.RefDelay, JobID: id})
	}

	if s.Ping != nil {
		refs = append(refs, trip.Ref{Kind: trip.RefPing, JobID: id})
	}

	return refs
}

// writePauses writes the pauses of paused jobs, and removes the pauses of resumed jobs.
func writePauses(tx *sql.Tx, verdicts []verdict, b batch) error {
	var paused []trip.Pause
	var over []int64
	for i := range verdicts {
		v := &verdicts[i]
		switch {
		case v.Result != job.BulkChanged:
		case v.Action == job.ActionPause || v.pausing() == job.ActionPause:
			p := trip.Pause{
				JobID: v.jobID(), Since: b.now, Until: v.Pause.Until, Who: b.actor.Who, Reason: v.Pause.Reason,
			}
			if v.seen != nil && v.seen.Paused {
				p.Since = v.seen.Pause.Since
			}
			paused = append(paused, p)
		case v.seen != nil && v.seen.Paused && !v.row.Paused:
			over = append(over, v.view.ID)
		}
	}

	if err := trip.PutPauses(tx, paused); err != nil {
		return err
	}
	return trip.DropPauses(tx, over)
}

// linesOf returns the audit lines of the changes.
func linesOf(verdicts []verdict) (lines []*job.Entry) {
	for i := range verdicts {
		v := &verdicts[i]
		if v.Result != job.BulkChanged || v.Action == recalendar {
			continue // the audit line of the calendar covers the job
		}
		lines = append(lines, v.line())
		if action := v.pausing(); action != "" {
			more := *v.line()
			more.Action, more.Was, more.Became, more.Reason = action, "", "", ""
			lines = append(lines, &more)
		}
	}
	return lines
}

// note writes all audit lines except the last, and returns the last. The caller writes it with the
// commit, so it exists if and only if the whole change does.
func note(tx *sql.Tx, lines []*job.Entry, b batch) (*job.Entry, error) {
	if len(lines) == 0 {
		return nil, nil
	}
	for _, line := range lines {
		line.At = b.now
		if line.Who == "" {
			line.Actor = b.actor
		}
	}
	last := len(lines) - 1
	return lines[last], tx.InsertAudits(lines[:last])
}

// line returns the audit line of a change.
func (v *verdict) line() *job.Entry {
	line := &job.Entry{Action: v.Action, Kind: job.KindJob, Ref: v.jobID(), Reason: v.Reason}
	if v.seen != nil {
		line.App, line.Name = v.seen.App, v.seen.Name
	}

	switch v.Action {
	case job.ActionCreate:
		line.App, line.Name, line.Became = v.def.App, v.def.Name, v.text
	case job.ActionUpdate, job.ActionRollback:
		line.App, line.Name, line.Became = v.def.App, v.def.Name, v.text
		line.Was = v.seen.Text
	case job.ActionDelete:
		line.Was = v.seen.Text
	case job.ActionPause:
		line.Reason, line.Became = v.Pause.Reason, untilText(v.Pause.Until)
	}

	return line
}

// untilText returns the audit text of a pause's end.
func untilText(until job.Micros) string {
	if until == 0 {
		return ""
	}
	b, _ := json.Marshal(map[string]time.Time{"until": until.Time()}) // cannot fail
	return string(b)
}
