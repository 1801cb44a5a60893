//go:build members

package members

import (
	"testing"
	"time"
)

func TestGalera(t *testing.T) {
	begun := time.Now()
	c, err := StartGalera(t.Context(), 3, true)
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	})

	t.Logf("started within %s", time.Since(begun))
	holdsTogether(t, c)
}

// holdsTogether kills a member, which comes back and catches up.
func holdsTogether(t *testing.T, c *Cluster) {
	t.Helper()
	do := func(i int, statements ...string) {
		t.Helper()
		if err := c.do(t.Context(), i, statements...); err != nil {
			t.Fatal(err)
		}
	}

	has := func(i int, want string) {
		t.Helper()
		for end := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
			got, err := c.ask(t.Context(), i, "SELECT SUM(a) FROM kept.t")
			if err == nil && got == want {
				return
			}
			if time.Now().After(end) {
				t.Fatalf("member %d: got %q, %v; want %s", i+1, got, err, want)
			}
		}
	}

	do(0, "CREATE DATABASE kept", "CREATE TABLE kept.t (a INT PRIMARY KEY) ENGINE=InnoDB",
		"INSERT INTO kept.t VALUES (1)")

	for i := range c.Servers {
		has(i, "1")
	}

	last := len(c.Servers) - 1
	if err := c.Servers[last].Kill(); err != nil {
		t.Fatal(err)
	}
	killed := time.Now()
	do(0, "INSERT INTO kept.t VALUES (2)")
	t.Logf("a commit %s after the death of a member", time.Since(killed))
	if err := c.Restart(t.Context(), last); err != nil {
		t.Fatal(err)
	}

	t.Logf("back %s after its death", time.Since(killed))
	has(last, "3")
}
