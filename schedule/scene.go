package schedule

import (
	"maps"
	"slices"

	"go-crontab/job"
	"go-crontab/sql"
	"go-crontab/sql/trip"
)

// scene holds everything that the verdicts on a batch of runs depend on. One transaction reads it,
// and keeps the rows of the groups and jobs locked until it ends. Each verdict updates the scene: a
// run that starts counts as executing for the runs judged after it.
type scene struct {
	now job.Micros
	surroundings
	groups map[string]*groupScene // by name: locked groups, and an empty scene for a name without a group
	slots  map[int32]*groupScene  // locked groups, by id
	jobs   map[int64]*jobScene
}

// surroundings is the part of the scene that is not read from locked rows.
type surroundings struct {
	labels map[string]string // of this node
	stops  []trip.Stop
	limits *allowances
	late   map[lateRun]bool // the misfired runs that may still start
	lost   map[lateRun]bool // runs that must end because no living node may run them

	waiting waiting // earlier due times that late runs wait for
}

// jobScene is the part of the scene for one job.
type jobScene struct {
	trip.Job
	busy      bool                  // another transaction has locked the row
	gone      bool                  // the job does not exist
	def       *Definition           // of the current version; nil: not read yet
	stops     []trip.Stop           // of the scene
	late      map[lateRun]bool      // of the scene
	lost      map[lateRun]bool      // of the scene
	elsewhere bool                  // this node may not run it
	turn      *trip.Held            // the run that excludes others: executing, woken, or waiting for a slot; nil: none
	queued    int                   // runs that wait in the line of the job, without backfills
	line      []trip.Held           // the queued runs, with overlap replace only
	latest    job.Micros            // the latest due time of the batch that is not in the future, without backfills
	group     *groupScene           // nil: the job has no group, or another transaction has locked it
	slots     map[int32]*groupScene // of the scene
	allowance *allowance            // of its app; nil: the app has no limits

	backfills map[int64]trip.BackfillState // by id
	arrivals  []trip.Arrival               // of a job that follows several jobs, the earliest end first

	unbegun []trip.Unbegun // due times that have not begun, the earliest first; only for late runs, see order.go
	behind  bool           // a run is held for them
}

// groupScene is the part of the scene for one group.
type groupScene struct {
	*trip.Group               // nil: the group does not exist
	before      int           // slots taken when the row was read
	known       []job.Micros  // its starts when the row was read
	woken       int           // runs woken for its slots a moment ago
	lined       bool          // runs wait in its line; only with a rate
	queued      map[int64]int // runs waiting for a slot, by job; only for a full group and overlap allow
}

// readScene locks the groups and jobs of the runs, and reads the rest of the scene.
func readScene(tx *sql.Tx, runs []trip.Run, defs *Definitions, around surroundings, now job.Micros) (*scene, error) {
	s := &scene{now: now, surroundings: around, jobs: map[int64]*jobScene{}}
	if err := s.lockGroups(tx, runs, defs); err != nil {
		return nil, err
	}
	if err := s.lockJobs(tx, runs, defs); err != nil {
		return nil, err
	}
	if err := s.readBackfills(tx, runs); err != nil {
		return nil, err
	}
	if err := s.readArrivals(tx, runs); err != nil {
		return nil, err
	}
	if err := s.readTurns(tx); err != nil {
		return nil, err
	}
	if err := s.readLines(tx); err != nil {
		return nil, err
	}

	if err := s.readUnbegun(tx, runs); err != nil {
		return nil, err
	}

	return s, s.readGroupLines(tx, runs)
}

// lockGroups locks the groups that the runs seem to need, and the groups whose slots they hold.
// Groups are locked before jobs, so lockGroups has to rely on the latest definitions that the node
// knows. If the locked job turns out to need another group, its runs are judged again later.
func (s *scene) lockGroups(tx *sql.Tx, runs []trip.Run, defs *Definitions) error {
	names, held := map[string]bool{}, map[int32]bool{}
	for i := range runs {
		if d := defs.Latest(runs[i].JobID); d != nil && d.Err == nil && d.Spec.Group != "" {
			names[d.Spec.Group] = true
		}
		if runs[i].Group > 0 {
			held[runs[i].Group] = true
		}
	}

	if len(names)+len(held) == 0 {
		return nil
	}

	s.groups, s.slots = map[string]*groupScene{}, map[int32]*groupScene{}
	if err := s.lockNamedGroups(tx, slices.Sorted(maps.Keys(names))); err != nil {
		return err
	}

	maps.DeleteFunc(held, func(id int32, _ bool) bool { return s.slots[id] != nil })
	others, err := trip.LockGroupIDs(tx, slices.Sorted(maps.Keys(held)))
	if err != nil {
		return err
	}

	for _, g := range others {
		s.addGroup(g)
	}

	woken, err := trip.Woken(tx, slices.Sorted(maps.Keys(s.slots)), s.now)
	if err != nil {
		return err
	}
	lined, err := trip.Lined(tx, s.lockedGroups())
	for id, g := range s.slots {
		g.woken, g.lined = woken[id], lined[id]
	}

	return err
}

// lockedGroups lists the groups that the transaction has locked, by id.
func (s *scene) lockedGroups() (groups []*trip.Group) {
	for _, id := range slices.Sorted(maps.Keys(s.slots)) {
		groups = append(groups, s.slots[id].Group)
	}
	return groups
}

func (s *scene) addGroup(g *trip.Group) {
	gs := &groupScene{Group: g, before: g.Taken, known: slices.Clip(g.Starts), queued: map[int64]int{}}
	s.groups[g.Name], s.slots[g.ID] = gs, gs
}

// lockNamedGroups locks groups by name. Afterwards s.groups has no entry for a group that another
// transaction has locked. A name without a group has an empty scene.
func (s *scene) lockNamedGroups(tx *sql.Tx, names []string) error {
	locked, err := trip.LockGroups(tx, names)
	if err != nil {
		return err
	}

	for _, g := range locked {
		s.addGroup(g)
	}

	if len(locked) == len(names) {
		return nil
	}

	exist, err := trip.GroupNames(tx, names)
	for _, name := range names {
		if locked[name] == nil && !exist[name] {
			s.groups[name] = &groupScene{}
		}
	}

	return err
}

// lockJobs locks the rows of the runs' jobs, and skips rows that are locked already.
func (s *scene) lockJobs(tx *sql.Tx, runs []trip.Run, defs *Definitions) error {
	ids := jobsOf(runs)
	locked, err := trip.LockJobs(tx, ids)
	if err != nil {
		return err
	}

	var missing []int64
	for _, id := range ids {
		j := locked[id]
		if j == nil {
			missing = append(missing, id)
			continue
		}
		s.addJob(j, defs)
	}

	// `locked` has neither deleted jobs nor jobs that another transaction has locked. Existing
	// says which of the missing jobs exist.
	exist, err := trip.Existing(tx, missing)
	for _, id := range missing {
		s.jobs[id] = &jobScene{busy: exist[id], gone: !exist[id]}
	}

	for i := range runs {
		if r := &runs[i]; r.Kind != trip.Backfill && r.DueNow <= s.now {
			s.jobs[r.JobID].latest = max(s.jobs[r.JobID].latest, r.Due)
		}
	}

	return err
}

// addJob adds the scene of a job whose row the transaction has locked.
func (s *scene) addJob(j *trip.Job, defs *Definitions) {
	js := &jobScene{Job: *j, slots: s.slots, stops: s.stops, late: s.late, lost: s.lost}
	js.def, _ = defs.Get(j.ID, j.Version)
	js.elsewhere = js.def != nil && !js.def.admits(s.labels)
	if spec := js.spec(); spec != nil {
		js.allowance = s.limits.of(spec.App)
		if spec.Group != "" {
			js.group = s.groups[spec.Group]
		}
	}
	s.jobs[j.ID] = js
}

// spec returns the definition of the job; nil if it has not been read or is invalid.
func (j *jobScene) spec() *job.Spec {
	if j.def == nil || j.def.Err != nil {
		return nil
	}
	return j.def.Spec
}

// excludes reports whether a run of the job keeps its other runs from starting.
func (j *jobScene) excludes() bool {
	spec := j.spec()
	return spec == nil || spec.Overlap != job.OverlapAllow
}

// readTurns reads the runs that exclude others. It reads one row for each job. For a crowded job it
// reads all executing runs, because job.running can name only one of them.
func (s *scene) readTurns(tx *sql.Tx) error {
	var running, crowded []int64
	for id, j := range s.jobs {
		switch {
		case !j.excludes():
		case j.Crowded:
			crowded = append(crowded, id)
			fallthrough
		default:
			if j.Running != 0 {
				running = append(running, j.Running)
			}
		}
	}

	turns, err := trip.Turns(tx, running)
	if err != nil {
		return err
	}

	for _, j := range s.jobs {
		j.turn = turns[j.Running]
	}

	if len(crowded) == 0 {
		return nil
	}

	owners, err := trip.Owners(tx)
	if err != nil {
		return err
	}

	executing, err := trip.ExecutingOf(tx, owners, crowded)
	for i := range executing {
		h := &executing[i]
		if j := s.jobs[h.JobID]; j.turn == nil || j.turn.State != trip.Executing {
			j.turn = h
		}
	}

	return err
}

// readLines reads the lines of jobs. If no run of a job has the turn, the line of the job is empty.
func (s *scene) readLines(tx *sql.Tx) error {
	var count, list []int64
	for id, j := range s.jobs {
		spec := j.spec()
		switch {
		case j.turn == nil || spec == nil:
		case spec.Overlap == job.OverlapReplace:
			list = append(list, id)
		default:
			count = append(count, id)
		}
	}

	queued, err := trip.Queued(tx, count)
	if err != nil {
		return err
	}

	for id, n := range queued {
		s.jobs[id].queued = n
	}

	lines, err := trip.Lines(tx, list)
	for _, h := range lines {
		j := s.jobs[h.JobID]
		if j == nil {
			continue // somebody has edited the row: the run is in the line of a different job
		}
		j.line = append(j.line, h)
		j.queued++
	}

	return err
}

// readGroupLines counts the runs that wait for a slot, for jobs with overlap allow. Any other job
// has at most one such run.
func (s *scene) readGroupLines(tx *sql.Tx, runs []trip.Run) error {
	for i := range runs {
		r := &runs[i]
		j := s.jobs[r.JobID]
		g := j.group
		if g == nil || g.Group == nil || g.free(r, s.now) > 0 || j.excludes() {
			continue
		}
		if _, known := g.queued[r.JobID]; known {
			continue
		}
		n, err := trip.QueuedInGroup(tx, g.ID, r.JobID, r.Hash)
		if err != nil {
			return err
		}
		g.queued[r.JobID] = n
	}

	return nil
}
