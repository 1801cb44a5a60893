package execute

import (
	"context"
	"fmt"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.uber.org/goleak"

	"go-crontab/job"
)

// secret stands for the daemon's token: no command may see it.
const secret = "s3cr3t-of-the-daemon"

func TestMain(m *testing.M) {
	_ = os.Setenv("GOCRONTAB_TOKEN", secret)
	_ = os.Setenv("BASH_ENV", "/nonexistent/"+secret)
	_ = os.Setenv("EXECUTE_TEST", secret)
	code := m.Run()
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	// Wait4 finds zombies and children that still run.
	if pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); err != syscall.ECHILD && code == 0 {
		fmt.Fprintf(os.Stderr, "children after the tests: wait4 got %d, %v, want ECHILD\n", pid, err)
		code = 1
	}
	os.Exit(code)
}

// patient and hasty are Config.PipeWait and Attempt.Grace for what must not run out, and for what must.
const patient, hasty = time.Minute, 300 * time.Millisecond

func shell(t testing.TB, change ...func(*Config)) *Shell {
	t.Helper()
	cfg := Config{Dir: t.TempDir(), PipeWait: patient}
	for _, f := range change {
		f(&cfg)
	}
	s, err := NewShell(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func attempt(command string) Attempt {
	return Attempt{
		Launch:  job.Launch{Run: 30064771079, Claim: 2},
		Session: uuid.MustParse("6f2c1a52-7f5e-4a6b-9a57-0d6a3a0b9f11"),
		Job:     "back up",
		App:     "default",
		Due:     time.Date(2026, 8, 1, 5, 0, 0, 250_000_000, time.FixedZone("", 2*3600)),
		Attempt: 2,
		Command: command,
		Grace:   patient,
	}
}

func run(t testing.TB, s *Shell, a Attempt) job.Result {
	t.Helper()
	return s.Execute(context.Background(), a)
}

// eventually waits for an effect of another process.
func eventually(t testing.TB, what string, cond func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !cond(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within 10 s: %s", what)
		}
	}
}
