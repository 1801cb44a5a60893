package privatedb

import (
	"path/filepath"
	"slices"
	"testing"
)

// TestSeed starts a server on a copy of a stopped server's data, with additional flags at each
// start.
func TestSeed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first := start(t, small(dir))
	write(t, first)
	if err := first.Stop(); err != nil {
		t.Fatal(err)
	}

	var lives int
	o := small("")
	o.Seed = filepath.Join(dir, "data")
	o.More = func(data string, args []string) (flags, env []string, err error) {
		lives++
		if !slices.Contains(args, "--datadir="+data) {
			t.Errorf("%q is not the folder of %q", data, args)
		}
		return []string{"--max-connections=" + map[int]string{1: "11", 2: "12"}[lives]}, []string{"TZ=UTC"}, nil
	}

	second := start(t, o)
	read(t, second)
	for life, want := range []int{11, 12} {
		if life > 0 {
			if err := second.Restart(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		var n int
		if err := query(t, second.DSN(""), "SELECT @@max_connections", &n); err != nil || n != want {
			t.Errorf("life %d: got %d connections, %v; want %d", life+1, n, err, want)
		}
	}
}
