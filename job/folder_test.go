package job

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

func TestFolderVerdict(t *testing.T) {
	t.Parallel()
	const now = Micros(int64(10 * time.Hour / time.Microsecond))
	long, shortly := now.Add(-BehindFor), now.Add(-BehindFor+time.Second)
	other := FolderNode{Node: "b", Alive: true, Digest: "new", Held: "new", State: FolderApplied}
	gone := other
	gone.Alive = false
	for name, c := range map[string]struct {
		digest  string
		nodes   []FolderNode
		applied bool
		err     error
	}{
		"it holds what is applied": {digest: "new", applied: true},
		"it holds what never was":  {digest: "newer", nodes: []FolderNode{other}},
		"it never changed and was overtaken": {
			digest: "old", nodes: []FolderNode{{Node: "a", Digest: "old", Held: "old"}, other}, err: ErrBehind,
		},
		"a new node comes with something old": {digest: "old", nodes: []FolderNode{other}, err: ErrBehind},
		"it goes back from what is applied": {
			digest: "old", nodes: []FolderNode{{Node: "a", Digest: "new", Held: "new"}, other},
		},
		"it goes back after it held what is wrong": {
			digest: "old", nodes: []FolderNode{{Node: "a", Digest: "wrong", Held: "new"}, other},
		},
		"it catches up step by step": {
			digest: "old", nodes: []FolderNode{{Node: "a", Digest: "older", Held: "older"}, other}, err: ErrBehind,
		},
		"it has been behind for long, another is right": {
			digest: "old", nodes: []FolderNode{{Node: "a", Digest: "old", State: FolderBehind, Since: long}, other},
			err: ErrBehind,
		},
		"it has been behind for long, nobody is right": {
			digest: "old", nodes: []FolderNode{{Node: "a", Digest: "old", State: FolderBehind, Since: long}, gone},
		},
		"it is behind since shortly, nobody is right": {
			digest: "old", nodes: []FolderNode{{Node: "a", Digest: "old", State: FolderBehind, Since: shortly}, gone},
			err: ErrBehind,
		},
		"it was behind with something else": {
			digest: "old", nodes: []FolderNode{{Node: "a", Digest: "older", State: FolderBehind, Since: long}},
			err: ErrBehind,
		},
	} {
		f := &FolderState{Digest: "new", Past: []string{"old", "older"}, Nodes: c.nodes}
		if applied, err := f.Verdict("a", c.digest, now); applied != c.applied || !errors.Is(err, c.err) {
			t.Errorf("%s: got %v, %v", name, applied, err)
		}
	}

	if applied, err := (&FolderState{}).Verdict("a", "x", now); applied || err != nil {
		t.Errorf("nothing was applied yet: got %v, %v", applied, err)
	}
}

func TestFolderAdvance(t *testing.T) {
	t.Parallel()
	var f FolderState
	for _, d := range []string{"1", "2", "3", "2"} {
		f.Advance(&Folder{Node: "n", Digest: d}, 7)
	}

	if f.Digest != "2" || !slices.Equal(f.Past, []string{"3", "1"}) || f.Node != "n" || f.Applied != 7 {
		t.Errorf("got %+v", f)
	}

	for i := range 2 * MaxPast {
		f.Advance(&Folder{Digest: fmt.Sprint("d", i)}, 7)
	}

	if len(f.Past) != MaxPast || f.Past[0] != fmt.Sprint("d", 2*MaxPast-2) {
		t.Errorf("kept %d, the latest %s", len(f.Past), f.Past[0])
	}
}

// TestFoldersComeTogether lets the copies of several nodes follow one history of commits, each at
// its own pace and with gaps, while nodes die and return. A state that no longer changes is applied
// in the end, once, and remains.
func TestFoldersComeTogether(t *testing.T) {
	t.Parallel()
	const nodes = 4
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 1))
		var history []string
		for range 2 + r.IntN(6) {
			history = append(history, string(rune('a'+r.IntN(4)))) // some are gone back to
		}

		f := &FolderState{}
		var at [nodes]int
		now, applied := Micros(1), 0
		for n := range nodes {
			f.Nodes = append(f.Nodes, FolderNode{Node: string(rune('0' + n)), Alive: true})
		}

		look := func(n int) {
			mine := &f.Nodes[n]
			if !mine.Alive {
				return
			}
			digest := history[at[n]]
			is, err := f.Verdict(mine.Node, digest, now)
			state := FolderApplied
			switch {
			case err != nil:
				state = FolderBehind
			case !is:
				f.Advance(&Folder{Node: mine.Node, Digest: digest}, now)
				applied++
			}
			if state == FolderApplied {
				mine.Held = digest
			}
			if mine.Digest != digest || mine.State != state {
				mine.Since = now
			}
			mine.Digest, mine.State = digest, state
		}

		for range 60 {
			now = now.Add(time.Duration(r.IntN(40)) * time.Second)
			n := r.IntN(nodes)
			switch r.IntN(8) {
			case 0, 1:
				at[n] = min(at[n]+1+r.IntN(2), len(history)-1)
			case 2:
				f.Nodes[n].Alive = r.IntN(3) > 0
			}
			look(n)
		}

		last := len(history) - 1
		for n := range nodes {
			at[n], f.Nodes[n].Alive = last, n == 0 || f.Nodes[n].Alive // some do not come back
		}

		looks := func() {
			for n := range nodes {
				now = now.Add(2 * time.Second)
				look(n)
			}
		}

		looks()
		now = now.Add(BehindFor) // in case the node that applied another state is gone
		looks()
		before := applied
		looks()
		if f.Digest != history[last] {
			t.Fatalf("seed %d: %v ends with %s applied", seed, history, f.Digest)
		}

		if applied != before {
			t.Fatalf("seed %d: it is applied again, and nothing has changed", seed)
		}

		for _, n := range f.Nodes {
			if n.Alive && n.State != FolderApplied {
				t.Fatalf("seed %d: node %s is %s at the end", seed, n.Node, n.State)
			}
		}
	}
}
