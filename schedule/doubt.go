package schedule

import "slices"

// doubt drops verdicts that are no longer sure. If another node has taken a run over, or an edit
// has taken it back, the start or wait of the run has failed (action forget). Verdicts on one job
// build on each other. So doubt drops all verdicts of the given kinds on that job, and their runs
// are judged again later.
func doubt(verdicts []verdict, doubtful ...action) {
	lost := map[int64]bool{}
	for i := range verdicts {
		if v := &verdicts[i]; v.action == forget {
			lost[v.run.JobID] = true
		}
	}

	if len(lost) == 0 {
		return
	}

	for i := range verdicts {
		if v := &verdicts[i]; lost[v.run.JobID] && slices.Contains(doubtful, v.action) {
			*v = verdict{action: hold, at: v.run.DueNow, run: v.run, def: v.def}
		}
	}
}
