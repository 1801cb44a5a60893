package schedule

import (
	"testing"

	"go-crontab/sql/trip"
)

// TestDoubt: a run that an edit has taken back, while the set still holds it, decides nothing about other runs of its job.
func TestDoubt(t *testing.T) {
	of := func(job int64, a action) verdict { return verdict{action: a, run: trip.Run{JobID: job, DueNow: 7}} }
	verdicts := []verdict{of(1, forget), of(1, refuse), of(1, wait), of(1, start), of(2, refuse)}

	doubt(verdicts, refuse)
	for i, want := range []action{forget, hold, wait, start, refuse} {
		if got := verdicts[i].action; got != want {
			t.Errorf("verdict %d: action %v, want %v", i, got, want)
		}
	}
	if at := verdicts[1].at; at != 7 {
		t.Errorf("the next look is at %d, want when the run is due", at)
	}

	doubt(verdicts, refuse, wait)
	if got := verdicts[2].action; got != hold {
		t.Errorf("the wait: action %v, want %v", got, hold)
	}
}
