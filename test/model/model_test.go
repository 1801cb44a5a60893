package model

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

// TestNoViolation searches each world with all rules.
func TestNoViolation(t *testing.T) {
	t.Parallel()

	more := uint8(0)
	if os.Getenv("GOCRONTAB_LONG_SEARCH") != "" {
		more = 1
	}

	for _, w := range sound(more) {
		t.Run(w.Name, func(t *testing.T) {
			if cut() {
				w.Max = 10_000
			}

			res := w.Search()
			t.Logf("%d states", res.States)
			if res.Cut && !cut() && more == 0 {
				t.Errorf("cut after %d states", res.States)
			}
			if want := statesOnPage(t, w.Name); more == 0 && !cut() && res.States != want {
				t.Errorf("%d states; docs/internals/model.md says %d", res.States, want)
			}

			for _, f := range res.Found {
				t.Errorf("%s\n%s", violation[f.Violation], traceText(f.Trace))
			}
		})
	}
}

// cut reports whether the searches end early: make test has no time for them, and the race detector
// makes them ten times slower and has nothing to find in them. make check searches everything.
func cut() bool { return underRace || testing.Short() }

// TestEachRuleIsNeeded takes each rule away and finds what breaks.
func TestEachRuleIsNeeded(t *testing.T) {
	t.Parallel()

	for _, n := range needed {
		t.Run(n.rules, func(t *testing.T) {
			w := n.world(all().without(n.rules))
			w.First = true
			res := w.Search()
			if len(res.Found) == 0 {
				t.Fatalf("nothing breaks in %d states", res.States)
			}
			f := res.Found[0]
			t.Logf("%d states: %s\n%s", res.States, violation[f.Violation], traceText(f.Trace))

			if cut() {
				return
			}

			whole := n.world(all()).Search()
			for _, f := range whole.Found {
				t.Errorf("with the rule: %s\n%s", violation[f.Violation], traceText(f.Trace))
			}
		})
	}
}

// TestEachRuleHasItsLine compares the lists of needed and spare rules with the declaration.
func TestEachRuleHasItsLine(t *testing.T) {
	t.Parallel()

	listed := slices.Clone(spare)
	for _, n := range needed {
		listed = append(listed, strings.Split(n.rules, "+")...)
	}

	names, _ := ruleNames()
	for _, name := range names {
		if !slices.Contains(listed, name) {
			t.Errorf("rule %s is in neither list", name)
		}
	}
}

func traceText(trace []string) string {
	var b strings.Builder
	for i, step := range trace {
		fmt.Fprintf(&b, "  %2d  %s\n", i+1, step)
	}
	return b.String()
}
