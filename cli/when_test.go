package cli

import (
	"strings"
	"testing"
	"time"
)

// TestExplainKnowsWhatHistoryPrints passes times as history prints them to explain, on a machine in
// Shanghai for jobs in Berlin. They belong to a manual run, two backfills of the same due time, a
// retried scheduled run, and a rerun of that due time.
func TestExplainKnowsWhatHistoryPrints(t *testing.T) {
	t.Parallel()

	s := serve(t, migrated(t), "one").ready()
	env := append(s.env(), "TZ=Asia/Shanghai")

	shanghai := func(args ...string) string {
		t.Helper()
		code, out := run(t, env, args...)
		if code != 0 {
			t.Fatalf("%q: got code %d, %s", args, code, out)
		}
		return out
	}

	latest := func(name string) string {
		t.Helper()
		lines := strings.Split(strings.TrimSpace(shanghai("job", "history", name, "-n", "1")), "\n")
		due, _, _ := strings.Cut(lines[len(lines)-1], "  ")
		if !strings.HasSuffix(due, "+08:00") {
			t.Fatalf("the history of %s prints %q", name, lines)
		}
		return due
	}

	wantExplained := func(what, name, at string, want ...string) {
		t.Helper()
		got := squeezed(shanghai("job", "explain", name, "--at", at))
		for _, w := range append(want, "Europe/Berlin") {
			if !strings.Contains(got, w) {
				t.Errorf("%s at %q: got %s, want %q", what, at, got, w)
			}
		}
	}

	shanghai("job", "add", "berlin", "--schedule", "0 0 1 * * *", "--timezone", "Europe/Berlin", "--", "true")

	shanghai("backfill", "start", "berlin", "--from", "2026-11-02 08:00", "--to", "2026-11-02 08:00", "--wait")
	const filled = "2026-11-02 08:00:00+08:00"
	if due := latest("berlin"); due != filled {
		t.Fatalf("the history prints %s, want %s", due, filled)
	}

	wantExplained("a backfilled run", "berlin", filled,
		filled+" (2026-11-02 01:00:00+01:00 Europe/Berlin)", "requested by a backfill", "ended succeeded")
	wantExplained("the same without an offset", "berlin", "2026-11-02 08:00", "requested by a backfill",
		"ended succeeded")

	shanghai("backfill", "start", "berlin", "--from", filled, "--to", filled, "--wait")
	wantExplained("two runs of one due time", "berlin", filled,
		"Another run, due "+filled+", was requested by a backfill. It was started")

	shanghai("job", "run", "berlin", "--wait")
	wantExplained("a run by hand", "berlin", latest("berlin"), "requested by hand", "ended succeeded")

	shanghai("job", "add", "retried", "--at", "+1s", "--attempts", "2", "--backoff", "1s", "--timezone",
		"Europe/Berlin",
		"--", "exit 3")
	await(t, "both attempts", 60*time.Second, func() bool { return len(s.runs("retried")) == 2 })
	due := latest("retried")
	wantExplained("a retried run", "retried", due, "It was attempted 2 times")

	run(t, env, "backfill", "start", "retried", "--from", due, "--to", due, "--wait") // its runs fail again
	wantExplained("its due time run again", "retried", due,
		"It was attempted 2 times", "Another run, due "+due+", was requested by a backfill")

	code, out := run(t, env, "job", "history", "berlin", "-z", "Nowhere/Else")
	if code != exitUsage || !strings.Contains(out, `--timezone: time zone "Nowhere/Else"`) {
		t.Errorf("an unknown zone: got code %d, %s", code, out)
	}

	if out := shanghai("job", "history", "berlin", "-z",
		"America/New_York"); !strings.Contains(out, "2026-11-01 19:00:00-05:00") {
		t.Errorf("the history in New York:\n%s", out)
	}
}

// TestTimesInText: only the times in a response are reformatted.
func TestTimesInText(t *testing.T) {
	t.Parallel()
	shanghai, err := time.LoadLocation("Asia/Shanghai")
	if err != nil {
		t.Fatal(err)
	}
	const text = "It was paused from 2027-01-31T01:00:00Z until 2027-01-31T03:30:00.25+01:00: see ticket 2027-01-31T9."
	const want = "It was paused from 2027-01-31 09:00:00+08:00 until 2027-01-31 10:30:00.250+08:00: see ticket 2027-01-31T9."
	if got := timesIn(text, shanghai); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
