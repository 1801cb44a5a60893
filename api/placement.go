package api

import (
	"context"
	"slices"

	"go-crontab/job"
	"go-crontab/sql"
)

// placeText is what a definition wants of nodes, in one line; "" when any will do.
func placeText(spec *job.Spec) string {
	sel, err := spec.Place()
	if err != nil {
		return spec.Selector
	}
	return sel.String()
}

// placeWarning tells that no node that lives would take a definition now, "" if one would.
func (s *Server) placeWarning(ctx context.Context, spec *job.Spec) (string, error) {
	sel, err := spec.Place()
	if err != nil || sel.Empty() {
		return "", nil // a wrong selector is no warning
	}
	sessions, err := s.cfg.DB.Sessions(ctx)
	if err != nil {
		return "", err
	}
	matched := slices.ContainsFunc(sessions, func(x sql.SessionRow) bool { return sel.Takes(x.AllLabels()) })
	takes := slices.ContainsFunc(sessions, func(x sql.SessionRow) bool {
		return x.Cordoned == 0 && !x.Draining && sel.Takes(x.AllLabels())
	})
	switch {
	case takes:
		return "", nil
	case matched:
		return "all nodes that match " + sel.String() + " are cordoned or draining now: due times wait, and are missed when they are too old", nil
	}
	return job.NoNode(sel.String()) + " now: due times wait for one, and are missed when they are too old", nil
}

// waitsOf shows what of jobs waits, by job, up to a few of each, the earliest due first. Of many jobs together it is bounded too.
func (s *Server) waitsOf(ctx context.Context, jobs []sql.JobRow) (map[int64][]jobWait, error) {
	specs, ids := make(map[int64]*job.Spec, len(jobs)), make([]int64, len(jobs))
	for i := range jobs {
		ids[i] = jobs[i].ID
		specs[ids[i]] = &jobs[i].Spec
	}
	rows, err := s.cfg.DB.Waiting(ctx, ids, maxWaits*min(len(jobs), 50))
	out := map[int64][]jobWait{}
	for _, w := range rows {
		if len(out[w.JobID]) == maxWaits {
			continue
		}
		v := jobWait{Due: stamp(w.Due), waitView: waitView{For: "job", Since: stamp(w.Since), Until: stamp(w.Expires)}, Why: "runs of the job before it have not ended"}
		switch w.Kind {
		case sql.WaitGroup:
			v.For, v.Group, v.Why = "group", w.Group, "group "+w.Group+" has no free slot"
		case sql.WaitPause:
			v.For, v.Why = "pause", "a backfill waits for the end of the pause"
		case sql.WaitNode:
			v.For, v.Selector = "node", placeText(specs[w.JobID])
			v.Why = noNode(w, v.Selector)
		}
		out[w.JobID] = append(out[w.JobID], v)
	}
	return out, err
}

// noNode says for which node a task waits; selector is what its job wants of nodes.
func noNode(w sql.WaitRow, selector string) string {
	if w.Place == 0 {
		return job.NoNode("")
	}
	return job.NoNode(selector)
}

// maxWaits is how many due times that wait are shown of a job.
const maxWaits = 20

// jobWait is a due time that waits.
type jobWait struct {
	Due string `json:"due" format:"date-time" doc:"The due time that waits."`
	waitView
	Why string `json:"why" doc:"Why, for people."`
}
