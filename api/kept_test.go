package api

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestKept: callers that ask at once share a computation, and a result is used for ten times its
// cost, at most keptFor.
func TestKept(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var by keptBy[int]
		n := 0
		ask := func(question string) int {
			v, err := by.of(question).get(t.Context(), func(context.Context) (int, error) {
				n++
				time.Sleep(time.Second)
				return n, nil
			})
			if err != nil {
				t.Error(err)
			}
			return v
		}

		var group sync.WaitGroup
		for range 3 {
			group.Go(func() {
				if got := ask("a"); got != 1 {
					t.Errorf("asked at once: got result %d, want 1", got)
				}
			})
		}
		group.Wait()

		if got := ask("b"); got != 2 {
			t.Errorf("another question: got result %d, want 2", got)
		}
		time.Sleep(keptFor - time.Second) // since a was computed: keptFor
		if got := ask("a"); got != 3 {
			t.Errorf("asked later: got result %d, want 3", got)
		}
		if len(by.each) != 2 {
			t.Errorf("%d results are kept, want 2", len(by.each))
		}

		time.Sleep(keptFor)
		boom := errors.New("boom")
		if _, err := by.of("a").get(t.Context(), func(context.Context) (int, error) { return 0, boom }); err != boom {
			t.Errorf("a failed computation: got %v", err)
		}
		if got := ask("a"); got != 4 || len(by.each) != 1 {
			t.Errorf("after a failure: got result %d, and %d results are kept", got, len(by.each))
		}

		// A cheap result is used for ten times its cost.
		cheap := func() int {
			v, _ := by.of("cheap").get(t.Context(), func(context.Context) (int, error) {
				n++
				time.Sleep(time.Millisecond)
				return n, nil
			})
			return v
		}
		for range 2 {
			if got := cheap(); got != 5 {
				t.Errorf("a cheap result, asked at once again: got %d, want 5", got)
			}
		}
		time.Sleep(10 * time.Millisecond)
		if got := cheap(); got != 6 {
			t.Errorf("a cheap result after ten times its cost: got %d, want 6", got)
		}
	})
}
