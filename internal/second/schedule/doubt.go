package schedule

// doubt has runs looked at again that were refused or had to wait for a run that did not start after all: its row is not ours any more, because
// somebody else has taken it or an edit has taken it back. Verdicts on one job follow each other, so the later ones of a job go
// by the earlier ones.
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
