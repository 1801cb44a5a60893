package schedule

import "slices"

// doubt drops verdicts that depend on a failed start or wait: another node has taken that run over,
// or an edit has taken it back while the set still held it. Verdicts on one job build on each
// other, so all of the job's verdicts of the doubtful kinds are dropped. Their runs are judged
// again later.
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
