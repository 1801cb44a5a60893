package result

import (
	"testing"

	"go-crontab/job"
)

// TestEndsAreCounted: the pool counts the ends of its own transactions by outcome, once each, and
// no ends of others.
func TestEndsAreCounted(t *testing.T) {
	f := setUp(t)
	ends := f.executing(6)
	ends[1].Outcome, ends[2].Outcome, ends[2].Reason.Text = job.Failed, job.Failed, "exit status 1"
	f.exec("UPDATE run SET state = 'ended', owner = -2, outcome = 'lost' WHERE id = ?", ends[5].Run)
	f.put(ends...)

	m := f.through.Meter()
	for outcome, want := range map[job.Outcome]int64{job.Succeeded: 3, job.Failed: 2, job.Lost: 0} {
		if got := m.Ended(outcome); got != want {
			t.Errorf("%s: %d are counted, want %d", outcome, got, want)
		}
	}
}
