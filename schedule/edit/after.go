package edit

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"go-crontab/job"
	"go-crontab/job/problem"
	"go-crontab/sql"
	"go-crontab/sql/trip"
)

// chains are the jobs that the jobs of a batch follow. All changes of chains lock the same row of
// table `locks`, one after the other. So no two changes together can make a cycle.
type chains struct {
	upstreams map[job.Name]int64 // existing jobs that changed definitions name
	problems  map[*job.Spec]job.Problems
}

// links reports whether the change may make its job follow other jobs than before.
func (v *view) links() bool {
	return v.names() && v.def.After != nil && (v.was == nil || !slices.Equal(v.was.Upstreams(), v.def.Upstreams()))
}

// unlinks reports whether the change may take away a job that other jobs follow.
func (v *view) unlinks() bool {
	switch {
	case v.seen == nil || v.problem != nil:
		return false
	case v.Action == job.ActionDelete:
		return true
	}
	return v.names() && (v.def.App != v.seen.App || v.def.Name != v.seen.Name)
}

// link finds the jobs that the changed definitions of a batch follow, and the problems with them.
func link(tx *sql.Tx, views []*view) (*chains, error) {
	var changed []*job.Spec
	defs, gone := map[job.Name]*job.Spec{}, map[job.Name]bool{}
	for _, v := range views {
		if v.links() {
			changed = append(changed, v.def)
		}
		if v.unlinks() {
			gone[job.Name{App: v.seen.App, Name: v.seen.Name}] = true
		}
		if v.names() {
			defs[v.def.JobName()] = v.def
		}
	}
	if len(changed) == 0 {
		return &chains{}, nil
	}

	if err := tx.TakeLocks([]sql.LockID{sql.LockAfter}); err != nil {
		return nil, err
	}
	return checkChains(tx, changed, defs, gone)
}

// checkChains finds the jobs that changed definitions follow. defs has all new definitions of a
// batch. gone has the names that the batch removes.
func checkChains(
	r sql.Reader, changed []*job.Spec, defs map[job.Name]*job.Spec, gone map[job.Name]bool,
) (*chains, error) {
	c := &chains{upstreams: map[job.Name]int64{}, problems: map[*job.Spec]job.Problems{}}
	names := map[job.Name]bool{}
	for _, spec := range changed {
		for _, n := range spec.Upstreams() {
			names[n] = true
		}
	}
	found, err := trip.LinkedJobs(r, sortedNames(names))
	if err != nil {
		return nil, err
	}

	for _, spec := range changed {
		var p job.Problems
		for i, n := range spec.Upstreams() {
			l, there := found[n]
			switch {
			case there && (!gone[n] || defs[n] != nil):
				c.upstreams[n] = l.ID
			case defs[n] == nil:
				s := problem.NoUpstream
				if near, err := nearName(r, n, defs); err != nil {
					return nil, err
				} else if near != "" {
					s = s.Advise("did you mean %q?", near)
				}
				p.Add(fmt.Sprintf("after.jobs[%d]", i), s, n)
			}
		}
		if p == nil {
			path, err := cycle(r, spec, defs)
			if err != nil {
				return nil, err
			}
			if path != "" {
				p.Add("after.jobs", problem.FollowsItself, path)
			}
		}
		if p != nil {
			c.problems[spec] = p
		}
	}
	return c, nil
}

func sortedNames(names map[job.Name]bool) []job.Name {
	return slices.SortedFunc(maps.Keys(names), func(a, b job.Name) int { return strings.Compare(a.String(), b.String()) })
}

// nearName returns the job that a mistyped name probably means, or "".
func nearName(r sql.Reader, n job.Name, defs map[job.Name]*job.Spec) (string, error) {
	names, err := trip.SomeNames(r, n.App)
	if err != nil {
		return "", err
	}
	for other := range defs {
		if other.App == n.App {
			names = append(names, other.Name)
		}
	}
	if near := job.Nearest(n.Name, names); near != "" {
		return job.Name{App: n.App, Name: near}.String(), nil
	}
	return "", nil
}

// cycle returns the path on which a definition makes its job follow itself, or "".
func cycle(r sql.Reader, spec *job.Spec, defs map[job.Name]*job.Spec) (string, error) {
	start := spec.JobName()
	from := map[job.Name]job.Name{} // the job that follows it
	level := []job.Name{start}
	for len(level) > 0 {
		var next, unread []job.Name
		reach := func(n job.Name, ups []job.Name) (path string) {
			for _, up := range ups {
				if up == start {
					path = start.String()
					for at := n; at != start; at = from[at] {
						path = at.String() + " → " + path
					}
					return start.String() + " → " + path
				}
				if _, seen := from[up]; !seen {
					from[up] = n
					next = append(next, up)
				}
			}
			return ""
		}

		for _, n := range level {
			if def := defs[n]; def == nil {
				unread = append(unread, n)
			} else if path := reach(n, def.Upstreams()); path != "" {
				return path, nil
			}
		}
		found, err := trip.LinkedJobs(r, unread)
		if err != nil {
			return "", err
		}
		for _, n := range unread {
			if l := found[n]; l.Spec != nil {
				if path := reach(n, l.Spec.Upstreams()); path != "" {
					return path, nil
				}
			}
		}
		level = next
	}
	return "", nil
}

// ids lists the jobs that the changed jobs newly follow.
func (c *chains) ids() []int64 { return slices.Sorted(maps.Values(c.upstreams)) }

// moved reports whether another transaction has locked, renamed or deleted a job that the batch
// links to.
func (c *chains) moved(locked map[int64]*trip.JobRow) bool {
	for n, id := range c.upstreams {
		if j := locked[id]; j == nil || j.Deleted || j.Name != n.Name {
			return true
		}
	}
	return false
}

// keepFollowed refuses to delete or rename jobs that others follow. The transaction has locked the
// jobs, so no other job can begin to follow them.
func keepFollowed(tx *sql.Tx, verdicts []verdict) error {
	var ids []int64
	became := map[int64]*verdict{}
	for i := range verdicts {
		v := &verdicts[i]
		if v.Result != job.BulkChanged {
			continue
		}
		became[v.view.ID] = v
		if v.unlinks() && v.row.Followed && !v.Force {
			ids = append(ids, v.view.ID)
		}
	}
	if len(ids) == 0 {
		return nil
	}

	followers, err := trip.FollowersOf(tx, ids)
	if err != nil {
		return err
	}
	for _, id := range ids {
		v := became[id]
		was := job.Name{App: v.seen.App, Name: v.seen.Name}
		var by []job.Name
		for _, f := range followers[id] {
			if w := became[f.ID]; w != nil && (w.Action == job.ActionDelete || w.def != nil && !w.def.Follows(was)) {
				continue
			}
			by = append(by, f.Spec.JobName())
		}
		if by != nil {
			*v = v.refuse(&job.InUse{Kind: "job", Name: was.String(), By: by})
		}
	}
	return nil
}

// writeChains marks the jobs that other jobs follow from now on. It also marks the executing runs
// of jobs that have a delay from now on. It removes arrivals that no job waits for any more.
func writeChains(tx *sql.Tx, verdicts []verdict, c *chains) error {
	follow, created := slices.Clone(c.ids()), map[string][]int64{}
	var delayed []int64
	for i := range verdicts {
		v := &verdicts[i]
		if v.Result != job.BulkChanged {
			continue
		}
		id := v.jobID()
		if v.Action == job.ActionCreate || v.unlinks() && v.Action != job.ActionDelete {
			created[v.row.Name] = append(created[v.row.Name], id)
		}
		if v.def != nil && v.def.Delay != 0 && v.was != nil && v.was.Delay == 0 {
			delayed = append(delayed, id)
		}

		if v.was == nil || v.was.After == nil || v.Action != job.ActionDelete && !v.names() {
			continue
		}
		var keep []int64
		if v.Action != job.ActionDelete && v.def.After.Gathers() {
			if !v.links() {
				continue
			}
			for _, n := range v.def.Upstreams() {
				keep = append(keep, c.upstreams[n])
			}
		}
		if err := trip.KeepArrivals(tx, id, keep); err != nil {
			return err
		}
	}

	// A new job may already have followers: those of a deleted job with the same name, or jobs of
	// this batch.
	named, err := trip.NamedUpstreams(tx, slices.Sorted(maps.Keys(created)))
	if err != nil {
		return err
	}
	for _, name := range named {
		follow = append(follow, created[name]...)
	}
	slices.Sort(follow)
	if err := trip.Follow(tx, slices.Compact(follow)); err != nil {
		return err
	}
	return trip.WatchExecuting(tx, delayed)
}
