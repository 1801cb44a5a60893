package sql

import "testing"

// TestFlag: any value written by hand can be read.
func TestFlag(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		v    any
		want bool
		err  bool
	}{
		{int64(0), false, false}, {int64(1), true, false}, {int64(-128), true, false}, {int64(7), true, false},
		{[]byte("0"), false, false}, {[]byte("1"), true, false}, {[]byte("-128"), true, false}, {nil, false, false},
		{[]byte("x"), false, true},
	} {
		f := Flag(!c.want)
		err := f.Scan(c.v)
		if (err != nil) != c.err || err == nil && bool(f) != c.want {
			t.Errorf("%v: got %v, %v; want %v, an error: %v", c.v, f, err, c.want, c.err)
		}
	}
}
