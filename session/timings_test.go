package session

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"go-crontab/sql"
)

func TestTimings(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		expiry time.Duration
		want   string // the error; "" if it works
	}{
		"the default":        {DefaultExpiry, ""},
		"the shortest":       {5 * time.Second, ""},
		"the longest":        {10 * time.Minute, ""},
		"not whole seconds":  {7123 * time.Millisecond, ""},
		"a moment too short": {5*time.Second - 1, "session expiry: 4.999999999s, want 5s to 10m"},
		"a moment too long": {
			10*time.Minute + 1, "session expiry: 10m0.000000001s, want 5s to 10m",
		},
		"none":                       {0, "session expiry: 0s, want 5s to 10m"},
		"less than none":             {-20 * time.Second, "session expiry: -20s, want 5s to 10m"},
		"seconds meant, minutes got": {20 * time.Minute, "session expiry: 20m, want 5s to 10m"},
	} {
		got, err := NewTimings(c.expiry)
		if text := errorText(err); text != c.want {
			t.Errorf("%s: got error %q, want %q", name, text, c.want)
		}
		if err == nil && got.Expiry != c.expiry {
			t.Errorf("%s: got expiry %s, want %s", name, got.Expiry, c.expiry)
		}
	}
}

// TestTimingsThatCannotWork changes one value of a working set.
func TestTimingsThatCannotWork(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*Timings)
		want   string
	}{
		"as derived":                {func(*Timings) {}, ""},
		"commands die just in time": {func(t *Timings) { t.Kill = 16801980198 - time.Nanosecond }, ""},
		"commands die when peers may start": {
			func(t *Timings) { t.Kill = 16801980199 },
			"commands would be dead only after 20s, want less than the session expiry 20s",
		},
		"a long grace": {
			func(t *Timings) { t.Grace = 10 * time.Second },
			"commands would be dead only after 23.23s, want less than the session expiry 20s",
		},
		"the client gives up before the server": {
			func(t *Timings) { t.SQL.LockWait = t.SQL.Read },
			"want lock wait (3s) < read timeout (3s) < stale lease (8s)",
		},
		"a start may be under way on a stale one": {
			func(t *Timings) { t.SQL.Read = t.Stale }, "want lock wait (2s) < read timeout (8s) < stale lease (8s)",
		},
	} {
		timings, err := NewTimings(20 * time.Second)
		if err != nil {
			t.Fatal(err)
		}

		c.change(&timings)
		if got := errorText(timings.check()); got != c.want {
			t.Errorf("%s: got error %q, want %q", name, got, c.want)
		}
	}
}

// TestTimingsOfAllExpiries checks the inequalities of the lease for every permitted expiry.
func TestTimingsOfAllExpiries(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		expiry := time.Duration(rapid.Int64Range(int64(MinExpiry), int64(10*time.Minute)).Draw(t, "expiry"))
		got, err := NewTimings(expiry)
		if err != nil {
			t.Fatalf("%s: %v", expiry, err)
		}

		watch := expiry / 200 // delay of the watchdog
		for what, holds := range map[string]bool{
			"commands are dead before peers may start": (got.Kill+watch+got.Grace+killLatency).Seconds()*1.01 <
				expiry.Seconds(),
			"stale before killed":                got.Stale < got.Kill,
			"a beat a quarter of the lease":      4*got.Beat <= got.Stale,
			"a lost beat and its repetition fit": got.Beat+got.Beat/8 < got.Stale,
			"lock wait < read":                   got.SQL.LockWait < got.SQL.Read,
			"read < stale":                       got.SQL.Read < got.Stale,
			"lock wait of whole seconds": got.SQL.LockWait >= time.Second &&
				got.SQL.LockWait%time.Second == 0,
			"idle of whole seconds":                              got.SQL.Idle%time.Second == 0,
			"a silent node's locks go before it may be replaced": got.SQL.Idle < expiry,
			"the dead are looked for often":                      got.Scan <= 500*time.Millisecond && got.Scan > 0,
		} {
			if !holds {
				t.Errorf("expiry %s: not so: %s (%+v)", expiry, what, got)
			}
		}

		db, err := sql.Open("u@tcp(127.0.0.1:1)/s", got.SQL, 1)
		if err != nil {
			t.Fatalf("expiry %s: its timeouts are refused: %v", expiry, err)
		}

		db.Close()
	})
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
