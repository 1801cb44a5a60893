package job_test

import (
	"testing"
	"time"

	"go-crontab/job"
	"go-crontab/test/specgen"

	"pgregory.net/rapid"
)

// TestMinimalSaysAll: the output of Minimal gives the same definition, and no part of it can be
// left out.
func TestMinimalSaysAll(t *testing.T) {
	t.Parallel()
	now := time.Date(2027, 1, 1, 0, 0, 0, 123_000, time.UTC)
	gen := specgen.Spec("app", []string{"g", "h"}, []string{"c"})
	rapid.Check(t, func(t *rapid.T) {
		s := gen.Draw(t, "spec")
		s.Defaults(now)
		text, err := s.Minimal()
		if err != nil {
			t.Fatal(err)
		}

		again, err := job.DecodeSpec(string(text))
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}

		if again.Defaults(now.AddDate(0, 1, 0)); !again.Same(&s) {
			t.Fatalf("%s comes to something else: %+v", text, again.Diff(&s))
		}

		if twice, err := again.Minimal(); err != nil || string(twice) != string(text) {
			t.Fatalf("the second time it is\n%s, %v, not\n%s", twice, err, text)
		}
	})
}
