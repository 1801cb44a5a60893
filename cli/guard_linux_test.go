package cli

import (
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestServeIsGuarded kills a node. The messages of its guard go to the node's log, in the same
// format.
func TestServeIsGuarded(t *testing.T) {
	t.Parallel()

	dsn := migrated(t)
	s := serve(t, dsn, "one").ready()
	s.says(`"msg":"the guard is running"`, 10*time.Second)
	s.signal(syscall.SIGKILL)
	s.exit(20 * time.Second) // stderr stays open until the guard has ended
	if log := s.out.String(); !strings.Contains(log, `"msg":"guard: ended the session of the dead node","node":"one"`) {
		t.Errorf("want that the guard says what it has done, in\n%s", log)
	}

	onlyJSON(t, s.out.String())

	s = serve(t, dsn, "two", "--no-guard").ready()
	s.signal(syscall.SIGTERM)
	if code := s.exit(20 * time.Second); code != exitOK {
		t.Errorf("got code %d", code)
	}
	if log := s.out.String(); strings.Contains(log, `"the guard is running"`) ||
		!strings.Contains(log, `"msg":"no guard: if this process is killed`) {
		t.Errorf("want that it says what it does without, in\n%s", log)
	}
}
