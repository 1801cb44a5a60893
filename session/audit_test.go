package session

import (
	"fmt"
	"testing"
	"time"

	"go-crontab/job"
)

// TestAuditOfTheDead: the burial of a peer that vanished is one audit line.
func TestAuditOfTheDead(t *testing.T) {
	f := setUp(t)
	s := f.join("one")
	peer := f.peer(200)
	f.exec("UPDATE session SET beat_at = 1 WHERE id = ?", peer[:])
	r, calls := f.reaper(s)
	for look := range 3 {
		if err := r.reap(t.Context(), at(time.Duration(look)*(MinExpiry+1))); err != nil {
			t.Fatal(err)
		}
	}

	f.want("lines", 1, "SELECT COUNT(*) FROM audit")
	f.want("its line", 1, `
		SELECT COUNT(*)
		FROM audit
		WHERE action = 'reap' AND kind = 'session' AND name = 'peer' AND who = 'go-crontab' AND origin = 'one'
			AND at > 1000000 AND reason LIKE 'its last heartbeat was at %'`)
	if len(calls.buried) != 1 {
		t.Errorf("told %d times of a burial, want once", len(calls.buried))
	}
}

// TestAuditOfALostSession: a node that lost its session writes that into the audit at its end, even
// if a peer has buried the session. A node that simply leaves writes that.
func TestAuditOfALostSession(t *testing.T) {
	f := setUp(t)
	for i, c := range []struct {
		cause  error
		buried bool
		action job.Action
		reason string
	}{
		{nil, false, job.ActionLeave, ""},
		{ErrLapsed, false, job.ActionFence, ErrLapsed.Error() + "; its runs were killed"},
		{ErrLapsed, true, job.ActionFence, ErrLapsed.Error() + "; its runs were killed"},
		{ErrBuried, true, job.ActionFence, ErrBuried.Error() + "; its runs were killed"},
	} {
		f := f.reset(t)
		s := f.join(fmt.Sprint("node-", i))
		if c.cause != nil {
			s.Lose(c.cause)
		}
		if c.buried {
			f.exec("DELETE FROM session")
		}
		if err := s.End(t.Context(), f.db); err != nil {
			t.Fatal(err)
		}

		f.want("sessions", 0, "SELECT COUNT(*) FROM session")
		f.want(fmt.Sprint(i, " lines"), 1, "SELECT COUNT(*) FROM audit")
		f.want(fmt.Sprint(i, " ", c.action), 1, `
			SELECT COUNT(*)
			FROM audit
			WHERE action = ? AND reason = ? AND kind = 'session' AND name = ? AND origin = ? AND (was IS NULL) = ?`,
			c.action, c.reason, s.Node(), s.Node(), c.buried)
	}
}
