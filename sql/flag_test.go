package sql

import "testing"

// TestFlag: a hand may write anything where 0 or 1 belongs, and the row is to be read all the same.
func TestFlag(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		v    any
		want bool
		err  bool
	}{
		{int64(0), false, false}, {int64(1), true, false}, {int64(-128), true, false}, {int64(7), true, false},
		{[]byte("0"), false, false}, {[]byte("1"), true, false}, {[]byte("-128"), true, false}, {nil, false, false}, {[]byte("x"), false, true},
	} {
		f := flag(!c.want)
		err := f.Scan(c.v)
		if (err != nil) != c.err || err == nil && bool(f) != c.want {
			t.Errorf("%v: got %v, %v; want %v, an error: %v", c.v, f, err, c.want, c.err)
		}
	}
}

// TestSettingsOfAHand: what is no number counts as none, and does not keep nodes from reading the clock.
func TestSettingsOfAHand(t *testing.T) {
	f := setUp(t)
	for value, want := range map[string]int{"": 0, "x": 0, "1.5": 1, "1e30": 1, "32": 32, "🐇": 0} {
		f.exec("UPDATE setting SET value = ? WHERE name = 'buckets'", value)
		p := &Pulse{f.db}
		if at, n, err := p.Clock(t.Context()); err != nil || n != want || at == 0 {
			t.Errorf("%q: got %d buckets at %s, %v; want %d", value, n, at, err, want)
		}
	}
}
