package job

import "testing"

func TestDistance(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"", "abc", 3}, {"abc", "", 3}, {"shop", "shop", 0},
		{"shpo", "shop", 1}, {"hsop", "shop", 1}, {"hspo", "shop", 2},
		{"webb-1", "web-1", 1}, {"sesion", "session", 1}, {"command", "comand", 1}, {"kitten", "sitting", 3},
	} {
		if got := distance(c.a, c.b); got != c.want {
			t.Errorf("from %q to %q: got %d, want %d", c.a, c.b, got, c.want)
		}
	}
}
