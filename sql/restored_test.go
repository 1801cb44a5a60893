package sql

import (
	"strings"
	"testing"
)

// TestEpochs: which databases are older, according to a process that has seen several.
func TestEpochs(t *testing.T) {
	t.Parallel()
	see := func(marks ...string) (seen Watermark) {
		for _, m := range marks {
			seen = WatermarkOf(m, "1 1").After(seen)
		}
		return seen
	}

	for name, c := range map[string]struct {
		seen Watermark
		is   string
		lost bool
	}{
		"nothing was seen":                             {see(), "a", false},
		"the same":                                     {see("a"), "a", false},
		"an accepted restore":                          {see("a"), "b a", false},
		"a restore of before it":                       {see("a", "b a"), "a", true},
		"of long before it":                            {see("c b a"), "a", true},
		"a further one, accepted":                      {see("a", "b a"), "c a", false},
		"what a database between them was":             {see("a", "b a", "c a"), "b a", true},
		"seen again, it is known still":                {see("a", "b a", "c a", "c a"), "b a", true},
		"another cluster":                              {see("a", "b a"), "x", false},
		"back from another cluster":                    {see("a", "b a", "x"), "b a", false},
		"another cluster, which was restored, as well": {see("a", "y x"), "a", false},
	} {
		if got := WatermarkOf(c.is, "1 1").Lost(c.seen); got != c.lost {
			t.Errorf("%s: got %v of %+v", name, got, c.seen)
		}
	}

	many := Watermark{}
	for i := range 100 {
		many = Watermark{Epoch: strings.Repeat("x", i+1), Before: many.Epoch}.After(many)
	}

	if n := len(strings.Fields(many.Before)); n != 2*epochsKept {
		t.Errorf("%d epochs are kept", n)
	}
}

// TestEpochFits: the row of the epoch has room, even after many draws.
func TestEpochFits(t *testing.T) {
	f := setUp(t)
	for range epochsKept + 3 {
		if err := f.db.AcceptRestore(t.Context()); err != nil {
			t.Fatal(err)
		}
	}

	m, err := f.db.ReadWatermark(t.Context())
	if epochs := strings.Fields(m.Before); err != nil || len(m.Epoch) != 36 || len(epochs) != epochsKept-1 ||
		len(epochs[epochsKept-2]) != 36 {
		t.Errorf("got %+v, %v", m, err)
	}
}
