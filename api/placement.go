package api

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"go-crontab/api/view"
	"go-crontab/job"
	"go-crontab/job/problem"
	"go-crontab/sql"
	"go-crontab/sql/read"
)

// placeText is the node selector of a definition in one line; "" if the job may run on any node.
func placeText(spec *job.Spec) string {
	sel, err := spec.Place()
	if err != nil {
		return spec.Selector
	}
	return sel.String()
}

// placeWarning warns if no live node accepts runs of a definition now. Otherwise it returns nil.
func (s *Server) placeWarning(ctx context.Context, spec *job.Spec) (*problem.Text, error) {
	sel, err := spec.Place()
	if err != nil || sel.Empty() {
		return nil, nil // an invalid selector is an error elsewhere, not a warning
	}

	sessions, err := s.cfg.DB.Sessions(ctx)
	if err != nil {
		return nil, err
	}

	matched := slices.ContainsFunc(sessions, func(x sql.SessionRow) bool { return sel.Takes(x.AllLabels()) })
	takes := slices.ContainsFunc(sessions, func(x sql.SessionRow) bool {
		return x.Cordoned == 0 && !x.Draining && sel.Takes(x.AllLabels())
	})
	warning := problem.NoNodeMatches.Of(sel)
	switch {
	case takes:
		return nil, nil
	case matched:
		warning = problem.NodesAreDrained.Of(sel)
	}
	return &warning, nil
}

// liveWarnings warns if no live node would run a definition now. It also warns if this node would
// refuse to run the definition. With a selector it does not ask this node, because the job may be
// meant for other nodes.
func (s *Server) liveWarnings(ctx context.Context, spec *job.Spec) (out []problem.Text, err error) {
	place, err := s.placeWarning(ctx, spec)
	if place != nil {
		out = append(out, *place)
	}
	if s.cfg.Refuses == nil || spec.Selector != "" {
		return out, err
	}
	if why := s.cfg.Refuses(spec); why != nil {
		out = append(out, problem.NodeRefuses.Of(s.cfg.Node, why.Error()))
	}
	return out, err
}

// liveKey returns a text that is equal for definitions with the same liveWarnings.
func liveKey(spec *job.Spec) string {
	key := placeText(spec) + "\n" + spec.User
	if spec.HTTP != nil {
		key += "\n" + spec.HTTP.URL
	}
	return key
}

// waitsOf lists the waiting due times of each job, earliest first. It returns up to maxWaits per
// job, and a limited number in all.
func (s *Server) waitsOf(ctx context.Context, jobs []read.Job) (map[int64][]view.JobWait, error) {
	specs, ids := make(map[int64]*job.Spec, len(jobs)), make([]int64, len(jobs))
	for i := range jobs {
		ids[i] = jobs[i].ID
		specs[ids[i]] = &jobs[i].Spec
	}

	most := maxWaits * min(len(jobs), 50)
	rows, err := s.cfg.DB.Waiting(ctx, ids, most)
	if err != nil {
		return nil, err
	}

	unplaceable, err := s.unplaceable(ctx, jobs, most)
	if err != nil {
		return nil, err
	}

	rated, err := s.cfg.DB.Rated(ctx, groupsOf(rows))
	if err != nil {
		return nil, err
	}

	out, now := map[int64][]view.JobWait{}, job.MicrosOf(s.cfg.Now())
	for _, w := range rows {
		if len(out[w.JobID]) < maxWaits {
			v := viewOfWait(&w, specs[w.JobID])
			if g, is := rated[w.Group]; is {
				next := g.NextStart(now, 0)
				v.Rate, v.NextStart = g.Rate.String(), instant(next)
				v.Why = fmt.Sprintf("rate of group %s is %s, next start at %s", w.Group, g.Rate, next)
			}
			out[w.JobID] = append(out[w.JobID], v)
		}
	}

	for _, w := range unplaceable {
		if len(out[w.JobID]) < maxWaits {
			out[w.JobID] = append(out[w.JobID], viewOfUnplaceable(&w, specs[w.JobID]))
		}
	}

	return out, nil
}

// groupsOf lists the groups whose slots runs are waiting for.
func groupsOf(waits []read.Wait) []string {
	names := map[string]bool{}
	for i := range waits {
		if name := waits[i].Group; name != "" {
			names[name] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// viewOfWait shows a run that waits for another run, or for a group slot.
func viewOfWait(w *read.Wait, spec *job.Spec) view.JobWait {
	v := view.JobWait{
		Due: w.Due.Time(), Wait: view.Wait{For: "job", Since: since(w), Until: instant(expires(w, spec))},
		Why: "earlier runs of the job have not ended",
	}
	if w.Group != "" {
		v.For, v.Group, v.Why = "group", w.Group, "group "+w.Group+" has no free slot"
	}
	return v
}

// since returns when a run began to wait. For requested runs this is unknown.
func since(w *read.Wait) *time.Time {
	if w.Kind != job.FromSchedule {
		return nil
	}
	return instant(w.Due)
}

// expires returns when a waiting run becomes missed; zero: never. Requested runs have no deadline.
func expires(w *read.Wait, spec *job.Spec) job.Micros {
	if w.Kind != job.FromSchedule || spec.StartDeadline == 0 {
		return 0
	}
	return w.Due.Add(time.Duration(spec.StartDeadline))
}

// viewOfUnplaceable shows a run that no live node may start.
func viewOfUnplaceable(w *read.Wait, spec *job.Spec) view.JobWait {
	selector := placeText(spec)
	return view.JobWait{
		Due:  w.Due.Time(),
		Wait: view.Wait{For: "node", Selector: selector, Since: since(w), Until: instant(expires(w, spec))},
		Why:  job.NoNode(selector),
	}
}

// unplaceable lists due runs of jobs that no live node may start.
func (s *Server) unplaceable(ctx context.Context, jobs []read.Job, most int) ([]read.Wait, error) {
	choosy := slices.ContainsFunc(jobs, func(j read.Job) bool { return placeText(&j.Spec) != "" })
	if !choosy {
		return nil, nil
	}

	sessions, err := s.cfg.DB.Sessions(ctx)
	if err != nil {
		return nil, err
	}

	var ids []int64
	for i := range jobs {
		sel, err := jobs[i].Spec.Place()
		takes := func(x sql.SessionRow) bool { return x.Cordoned == 0 && !x.Draining && sel.Takes(x.AllLabels()) }
		if err == nil && !sel.Empty() && !slices.ContainsFunc(sessions, takes) {
			ids = append(ids, jobs[i].ID)
		}
	}

	if len(ids) == 0 {
		return nil, nil
	}
	return s.cfg.DB.Untaken(ctx, ids, job.MicrosOf(s.cfg.Now()), most)
}

// maxWaits is the number of waiting due times shown per job.
const maxWaits = 20
