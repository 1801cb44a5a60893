package job

import (
	"errors"
	"fmt"
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
		"it holds what is applied":                      {digest: "new", applied: true},
		"it holds what never was":                       {digest: "newer", nodes: []FolderNode{other}},
		"it never changed and was overtaken":            {digest: "old", nodes: []FolderNode{{Node: "a", Digest: "old", Held: "old"}, other}, err: ErrBehind},
		"a new node comes with something old":           {digest: "old", nodes: []FolderNode{other}, err: ErrBehind},
		"it goes back from what is applied":             {digest: "old", nodes: []FolderNode{{Node: "a", Digest: "new", Held: "new"}, other}},
		"it goes back after it held what is wrong":      {digest: "old", nodes: []FolderNode{{Node: "a", Digest: "wrong", Held: "new"}, other}},
		"it catches up step by step":                    {digest: "old", nodes: []FolderNode{{Node: "a", Digest: "older", Held: "older"}, other}, err: ErrBehind},
		"it has been behind for long, another is right": {digest: "old", nodes: []FolderNode{{Node: "a", Digest: "old", State: FolderBehind, Since: long}, other}, err: ErrBehind},
		"it has been behind for long, nobody is right":  {digest: "old", nodes: []FolderNode{{Node: "a", Digest: "old", State: FolderBehind, Since: long}, gone}},
		"it is behind since shortly, nobody is right":   {digest: "old", nodes: []FolderNode{{Node: "a", Digest: "old", State: FolderBehind, Since: shortly}, gone}, err: ErrBehind},
		"it was behind with something else":             {digest: "old", nodes: []FolderNode{{Node: "a", Digest: "older", State: FolderBehind, Since: long}}, err: ErrBehind},
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
