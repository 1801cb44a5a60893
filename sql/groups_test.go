package sql

import (
	"testing"
	"time"
)

// TestGroupsAreLockedInOneOrder: whoever locks groups by their ids waits for the first of the names, as who locks them by names
// does, and has no other locked meanwhile.
func TestGroupsAreLockedInOneOrder(t *testing.T) {
	f := setUp(t)
	var ids []int64
	f.tx(func(tx *Tx) error {
		for _, name := range []string{"b", "a"} { // ids in the other order
			g, _, err := tx.PutGroup(name, 1, 1)
			if err != nil {
				return err
			}
			ids = append(ids, g.ID)
		}
		return nil
	})
	done := make(chan []Group, 1)
	f.tx(func(tx *Tx) error {
		if _, err := tx.LockGroups([]string{"a"}); err != nil {
			return err
		}
		go func() {
			var got []Group
			if err := f.db.Tx(t.Context(), func(tx *Tx) (err error) { got, err = tx.LockGroupIDs(ids); return err }); err != nil {
				t.Error(err)
			}
			done <- got
		}()
		time.Sleep(500 * time.Millisecond) // it waits by now
		free, _, err := tx.LockFreeGroups([]string{"b"})
		if err == nil && len(free) != 1 {
			t.Error("who waits for group a has locked group b")
		}
		return err
	})
	if got := <-done; len(got) != 2 || got[0].Name != "b" {
		t.Errorf("got %v, want both groups by their ids", got)
	}
}
