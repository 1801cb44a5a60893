//go:build members

package members

import (
	"testing"
	"time"
)

func TestGroup(t *testing.T) {
	begun := time.Now()
	c, err := StartGroup(t.Context(), 3, true)
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	})

	t.Logf("started within %s", time.Since(begun))
	if primary, err := c.Primary(t.Context(), 2); primary != 0 || err != nil {
		t.Errorf("member %d is the primary, %v; want the first", primary+1, err)
	}

	holdsTogether(t, c)
}
