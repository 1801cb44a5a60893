package schedule

import "slices"

// doubt drops verdicts that rest on a start or a wait that failed: another node has taken that run, or an edit has taken it back while
// the set still held it. Verdicts on one job build on each other, so all of its verdicts of these kinds are doubtful. Their runs are
// looked at again.
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
