package protocol

import (
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// few is how many states of a world are looked at under the race detector, which makes that ten times slower: there is
// nothing to find for it, since a search is one goroutine. make test searches all of them without it.
const few = 30_000

// TestInvariantsHold: in no state of any world is anything violated, and from each everything comes to an end. With
// GOCRONTAB_LONG_SEARCH=1, as make search has it, the worlds are larger.
func TestInvariantsHold(t *testing.T) {
	t.Parallel()
	long, page := os.Getenv("GOCRONTAB_LONG_SEARCH") != "", page(t)
	for _, w := range Worlds(long) {
		t.Run(w.Name, func(t *testing.T) {
			if !long {
				t.Parallel()
			}
			if instrumented {
				w.Most = few
			}
			begin := time.Now()
			r := Search(&w)
			if r.Found != nil {
				t.Fatal(r.Found)
			}
			t.Logf("%d states, by faults %v, %d steps, cut: %v, where %d lead to is open; %s", r.Total(), r.States, r.Steps, r.Cut, r.Open, time.Since(begin).Round(time.Millisecond))
			switch want := entryOf(&w) + " " + thousands(r.Total()) + " |\n"; {
			case long || instrumented:
			case r.Cut:
				t.Errorf("%d states are too many", r.Total())
			case !strings.Contains(page, want):
				t.Errorf("docs/model.md has no line\n%s", want)
			}
		})
	}
}

// TestCut: a search that is cut has looked at where everything comes to among the states that it has, and says of how many it does not know.
func TestCut(t *testing.T) {
	t.Parallel()
	w := World{Nodes: 2, Rules: Safe(), Dues: 1, Faults: 1, May: Faults{Kill: true}}
	whole := Search(&w)
	w.Most = whole.Total() * 3 / 4
	if r := Search(&w); r.Found != nil || !r.Cut || r.Open == 0 || r.Open == r.Total() || whole.Cut || whole.Open != 0 {
		t.Errorf("cut at %d of %d: found %v, cut %v, open %d of %d; whole: cut %v, open %d", w.Most, whole.Total(), r.Found, r.Cut, r.Open, r.Total(), whole.Cut, whole.Open)
	}
	w.Rules.Orphans, w.Most = false, 0
	w.Most = Search(&w).Total() - 1
	if r := Search(&w); !r.Cut || r.Found == nil || r.Found.Bad != Stuck {
		t.Errorf("cut: %v; found %v, want that something is stuck", r.Cut, r.Found)
	}
}

// TestDefences: without any defence an invariant is violated.
func TestDefences(t *testing.T) {
	t.Parallel()
	cases(t, Defences())
}

// TestHoles: what the code does not do today violates invariants. A hole that is mended is to be taken out of Holes.
func TestHoles(t *testing.T) {
	t.Parallel()
	cases(t, Holes())
}

// TestLimits: what is not promised does not hold.
func TestLimits(t *testing.T) {
	t.Parallel()
	cases(t, Limits())
}

// cases searches each world with and without what is in question. GOCRONTAB_TRACES=1 shows the ways to what is found.
func cases(t *testing.T, all []Case) {
	for i, c := range all {
		t.Run(fmt.Sprint(i+1, " ", c.Name), func(t *testing.T) {
			t.Parallel()
			w := c.World
			w.Nodes, w.Rules = 2, Safe()
			c.Without(&w.Rules)
			if instrumented && c.Breaks == 0 {
				w.Most = few
			}
			r := Search(&w)
			switch {
			case c.Breaks == 0 && r.Found != nil:
				t.Fatalf("another defence was to do the same; found %s", r.Found)
			case c.Breaks == 0:
				t.Logf("%d states: nothing found", r.Total())
				return
			case r.Found == nil:
				t.Fatalf("%d states, by faults %v: found nothing, want: %s", r.Total(), r.States, c.Breaks)
			case r.Found.Bad&c.Breaks == 0:
				t.Fatalf("want %s; found %s", c.Breaks, r.Found)
			}
			if r.Found.Faults != w.Faults {
				t.Errorf("%d faults were enough, want the world to allow no more; %s", r.Found.Faults, r.Found)
			}
			if os.Getenv("GOCRONTAB_TRACES") != "" {
				t.Log(r.Found)
			}
			if whole := Safe(); w.Rules != whole {
				w.Rules = whole
				if instrumented {
					w.Most = few
				}
				if r := Search(&w); r.Found != nil {
					t.Errorf("with everything in place: %s", r.Found)
				}
			}
		})
	}
}

// TestAllRulesAreTested: each rule is in Defences or in Holes, and stands in for something there by itself. Of those that another one
// stands in for, a later case takes both away.
func TestAllRulesAreTested(t *testing.T) {
	t.Parallel()
	tested := map[string]bool{}
	for _, c := range append(Defences(), Holes()...) {
		r := Safe()
		c.Without(&r)
		for _, name := range off(r) {
			tested[name] = tested[name] || c.Breaks != 0
		}
	}
	safe := reflect.ValueOf(Safe())
	for i := range safe.NumField() {
		name := safe.Type().Field(i).Name
		if !safe.Field(i).Bool() {
			t.Errorf("Safe lacks %s", name)
		}
		if !tested[name] {
			t.Errorf("no test takes %s away and finds something", name)
		}
	}
	all := Defences()
	for i, c := range all {
		r := Code()
		c.Without(&r)
		if r == Code() {
			t.Errorf("%s: the code does without it", c.Name)
		}
		more := func(o Case) bool {
			both := r
			o.Without(&both)
			only := Code()
			o.Without(&only)
			return o.Breaks != 0 && both == only && only != r
		}
		if c.Breaks == 0 && !slices.ContainsFunc(all[i:], more) {
			t.Errorf("%s: nothing breaks without it, and no later case takes away what does the same", c.Name)
		}
	}
}

// off lists the rules that are taken away.
func off(r Rules) (names []string) {
	v := reflect.ValueOf(r)
	for i := range v.NumField() {
		if !v.Field(i).Bool() {
			names = append(names, v.Type().Field(i).Name)
		}
	}
	return names
}
