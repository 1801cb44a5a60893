package cli

import (
	"strings"
	"testing"
	"time"
)

// TestExplainKnowsWhatHistoryPrints gives each time that history prints to explain, on a machine in Shanghai about a job in
// Berlin: a run of the schedule, one by hand, those of two backfills of one due time, and one that was retried.
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
	wantExplained := func(what, at string, want ...string) {
		t.Helper()
		got := squeezed(shanghai("job", "explain", "berlin", "--at", at))
		for _, w := range append(want, "Europe/Berlin") {
			if !strings.Contains(got, w) {
				t.Errorf("%s at %q: got %s, want %q", what, at, got, w)
			}
		}
	}
	shanghai("job", "add", "berlin", "--schedule", "0 */5 * * * *", "--timezone", "Europe/Berlin", "--attempts", "2", "--backoff", "1s", "--", "true")

	shanghai("backfill", "start", "berlin", "--from", "2026-11-02 08:00", "--to", "2026-11-02 08:00", "--wait")
	const filled = "2026-11-02 08:00:00+08:00"
	if out := shanghai("job", "history", "berlin"); !strings.Contains(out, filled) {
		t.Fatalf("the history does not print %s:\n%s", filled, out)
	}
	wantExplained("a backfilled run", filled, filled+" (2026-11-02 01:00:00+01:00 Europe/Berlin)", "asked for with a backfill", "ended succeeded")
	wantExplained("the same without an offset", "2026-11-02 08:00", "asked for with a backfill", "ended succeeded")
	shanghai("backfill", "start", "berlin", "--from", filled, "--to", filled, "--wait")
	wantExplained("two runs of one due time", filled, "Another run, due 2026-11-02T00:00:00Z, was asked for with a backfill. It was started")

	shanghai("job", "run", "berlin", "--wait")
	latest, _, _ := strings.Cut(strings.Split(strings.TrimSpace(shanghai("job", "history", "berlin", "-n", "1")), "\n")[1], "  ")
	if !strings.HasSuffix(latest, "+08:00") {
		t.Fatalf("history prints %q", latest)
	}
	wantExplained("a run by hand", latest, "asked for by hand", "ended succeeded")

	run(t, env, "job", "add", "retried", "--at", "+1s", "--attempts", "2", "--backoff", "1s", "--timezone", "Europe/Berlin", "--", "exit 3")
	await(t, "both attempts", 60*time.Second, func() bool { return len(s.runs("retried")) == 2 })
	latest, _, _ = strings.Cut(strings.Split(strings.TrimSpace(shanghai("job", "history", "retried", "-n", "1")), "\n")[1], "  ")
	if got := squeezed(shanghai("job", "explain", "retried", "--at", latest)); !strings.Contains(got, "It was attempted 2 times") {
		t.Errorf("a retried run at %q: got %s", latest, got)
	}

	if code, out := run(t, env, "job", "history", "berlin", "-z", "Nowhere/Else"); code != exitUsage || !strings.Contains(out, "--timezone") {
		t.Errorf("a zone that there is not: got code %d, %s", code, out)
	}
	if out := shanghai("job", "history", "berlin", "-z", "America/New_York"); !strings.Contains(out, "2026-11-01 19:00:00-05:00") {
		t.Errorf("history in New York:\n%s", out)
	}
}
