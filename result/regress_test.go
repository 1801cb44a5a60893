package result

import (
	"os"
	"testing"
)

// TestATornSpoolHarmsNothingThatIsSavedLater saves outcomes where a crash left half a line, and twice without having
// written the first ones.
func TestATornSpoolHarmsNothingThatIsSavedLater(t *testing.T) {
	s := spool(t)
	if err := os.WriteFile(s.path(), []byte(`{"Task":{"ID":1},"Run":{"Due`), 0o600); err != nil {
		t.Fatal(err)
	}
	r := waitingIn()
	for range 2 {
		r.Put(failed(7))
		if _, err := s.Save(r); err != nil {
			t.Fatal(err)
		}
	}
	got, torn, err := s.Load()
	if err != nil || torn || len(got) != 2 {
		t.Errorf("loaded %d outcomes, torn %t, %v; want the 2 that wait", len(got), torn, err)
	}
}
