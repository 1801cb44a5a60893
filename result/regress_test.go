package result

import (
	"os"
	"testing"

	"go-crontab/job"
)

// TestATornSpoolHarmsNothingThatIsSavedLater saves outcomes where a crash left half a line, and twice without having
// written the first ones.
func TestATornSpoolHarmsNothingThatIsSavedLater(t *testing.T) {
	s, err := OpenSpool(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(s.path(), []byte(`{"Task":{"ID":1},"Run":{"Due`), 0o600); err != nil {
		t.Fatal(err)
	}
	r := New(nil, nil, nil, nil)
	for range 2 {
		r.Put(&Outcome{Task: job.Task{ID: 7}, Run: job.Run{Result: job.Result{Outcome: job.Succeeded}}})
		if _, err := s.Save(r); err != nil {
			t.Fatal(err)
		}
	}
	got, torn, err := s.Load()
	if err != nil || torn || len(got) != 2 {
		t.Errorf("loaded %d outcomes, torn %t, %v; want the 2 that wait", len(got), torn, err)
	}
}
