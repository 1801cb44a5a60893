package schedule

// doubt drops refusals and waits that rest on a start that failed: another node has taken that run, or an edit has taken it back.
// Verdicts on one job build on each other, so all later ones of the job are doubtful. Their runs are looked at again.
func doubt(verdicts []verdict) {
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
		if v := &verdicts[i]; (v.action == refuse || v.action == wait) && lost[v.run.JobID] {
			*v = verdict{action: hold, at: v.run.DueNow, run: v.run, def: v.def}
		}
	}
}
