package node

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go-crontab/internal/loop"
)

// TestSteadyLog: an outage produces a few log lines and not some for each attempt, and no other
// line is suppressed.
func TestSteadyLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		log := slog.New(newSteady(slog.NewTextHandler(&out, nil)))
		said := func(want ...string) {
			t.Helper()
			got := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
			out.Reset()
			if got[0] == "" {
				got = nil
			}
			if len(got) != len(want) {
				t.Fatalf("got %d lines %q, want %d", len(got), got, len(want))
			}

			for i := range want {
				if !strings.HasSuffix(got[i], want[i]) {
					t.Errorf("line %d: got %q, want an end of %q", i, got[i], want[i])
				}
			}
		}

		away, refused := errors.New("away"), errors.New("refused")
		for i := range 290 { // 29 s of attempts
			log.Warn("beat failed", "error", away, "lease_age", time.Duration(i)*time.Millisecond)
			time.Sleep(100 * time.Millisecond)
		}

		said("error=away lease_age=0s")
		log.Warn("beat failed", "error", refused)
		log.Warn("claim", "error", away)
		said("error=refused", "msg=claim error=away")
		time.Sleep(time.Second)
		log.Warn("beat failed", "error", away, "lease_age", time.Minute)
		said("lease_age=1m0s repeated=289")
		time.Sleep(repeatAfter)
		log.Warn("beat failed", "error", away)
		said("error=away") // nothing was suppressed before it

		for range 2 { // each of these is specific
			log.Warn("task cannot be freed", "job_id", 7, "error", away)
			log.Error("run lost", "error", away)
			log.Warn("lease stale", "lease_age", time.Second)
			log.Info("plan", "error", away)
			log.With("session", "a").Warn("beat failed", "error", away)
		}

		once := []string{
			"job_id=7 error=away", `msg="run lost" error=away`, "lease_age=1s", "msg=plan error=away",
			"session=a error=away",
		}

		said(append(once, once...)...)

		// While MySQL is away all loops fail. One line is enough, and none when they work again.
		gone := fmt.Errorf("claim: %w", &net.OpError{Op: "dial", Err: errors.New("connection refused")})
		log.Warn("claim failed", "error", gone)
		log.Warn("cannot read pauses", "error", gone)
		log.Warn("cannot read limits", "error", fmt.Errorf("limits: %w", io.ErrUnexpectedEOF))
		log.Info(loop.WorksAgain, "after", time.Second, loop.Warning, "cannot read limits")
		log.Info(loop.WorksAgain, "after", time.Second, loop.Warning, "claim failed")
		said("connection refused\"", `warning="claim failed"`)
		time.Sleep(repeatAfter)
		log.Warn("cannot read pauses", "error", gone)
		log.Info(loop.WorksAgain, "after", time.Second, loop.Warning, "cannot read pauses")
		said("repeated=2", `warning="cannot read pauses"`)

		for i := range 3 * maxRecent { // errors that never repeat are not remembered forever
			log.Warn("claim", "error", fmt.Errorf("task %d", i))
		}

		if n := len(log.Handler().(steady).recent.lines); n > maxRecent {
			t.Errorf("%d lines are remembered, want at most %d", n, maxRecent)
		}
	})
}
