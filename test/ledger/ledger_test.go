package ledger_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go-crontab/test/ledger"
)

func newLedger(t *testing.T) *ledger.Ledger {
	t.Helper()
	l, err := ledger.Open(filepath.Join(t.TempDir(), "ledger"))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func entries(t *testing.T, l *ledger.Ledger) []ledger.Entry {
	t.Helper()
	es, err := l.Entries()
	if err != nil {
		t.Fatal(err)
	}
	return es
}

func TestAppend(t *testing.T) {
	t.Parallel()

	l := newLedger(t)
	want := ledger.Entry{Kind: ledger.End, App: "default", Job: "naïve job", Due: 1_790_000_000_123_456, Attempt: 2,
		Launch: "x-1", At: 5, PID: 7, Exit: 3}
	if err := l.Append(want); err != nil {
		t.Fatal(err)
	}

	if again, err := ledger.Open(l.Path()); err != nil || len(entries(t, again)) != 1 {
		t.Errorf("opened again: %v, %d entries", err, len(entries(t, again)))
	}
	if got := entries(t, l); len(got) != 1 || !reflect.DeepEqual(got[0], want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// TestTogether has many writers at once: this process and commands.
func TestTogether(t *testing.T) {
	t.Parallel()

	l := newLedger(t)
	var all sync.WaitGroup
	for w := range 8 {
		all.Go(func() {
			for i := range 200 {
				if err := l.Append(ledger.Entry{Kind: ledger.Start, App: "a", Job: "j", Due: 1,
					Launch: fmt.Sprint("go-", w, "-", i), At: 1}); err != nil {
					t.Error(err)
				}
			}
		})

		all.Go(func() {
			for i := range 5 {
				if out, err := bash(l.Command(0, 0), fmt.Sprint("bash-", w, "-", i)).CombinedOutput(); err != nil {
					t.Errorf("%v: %s", err, out)
				}
			}
		})
	}

	all.Wait()
	launches := map[string]int{}
	for _, e := range entries(t, l) {
		launches[e.Launch]++
	}

	if len(launches) != 8*205 {
		t.Errorf("%d launches, want %d", len(launches), 8*205)
	}
}

func bash(text, launch string) *exec.Cmd {
	cmd := exec.Command("bash", "-c", text)
	cmd.Env = append(os.Environ(), "GOCRONTAB_APP=ops", "GOCRONTAB_JOB=back up",
		"GOCRONTAB_DUE=2026-11-22T07:00:00.25Z", "GOCRONTAB_ATTEMPT=1",
		"GOCRONTAB_LAUNCH="+launch)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return cmd
}

func TestCommand(t *testing.T) {
	t.Parallel()

	l := newLedger(t)
	before := ledger.Now()
	if err := bash(l.Command(300*time.Millisecond, 4), "x-1").Run(); err == nil || err.Error() != "exit status 4" {
		t.Errorf("ended with %v, want exit status 4", err)
	}

	es := entries(t, l)
	start, end := es[0], es[len(es)-1]
	if start.Kind != ledger.Start || start.App != "ops" || start.Job != "back up" || start.Launch != "x-1" ||
		start.Attempt != 1 ||
		start.Due.String() != "2026-11-22T07:00:00.25Z" || start.At < before || start.PID == 0 {
		t.Errorf("start: %+v", start)
	}

	if end.Kind != ledger.End || end.Exit != 4 || end.At.Sub(start.At) < 300*time.Millisecond || end.At > ledger.Now() {
		t.Errorf("end: %+v, start: %+v", end, start)
	}
	if len(es) < 4 || es[1].Kind != ledger.Alive {
		t.Errorf("%d lines, want signs of life among them", len(es))
	}
}

func TestWrap(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	out, err := bash(l.Wrap(`echo "it's $GOCRONTAB_JOB"; exit 3`), "x-1").Output()
	if string(out) != "it's back up\n" || err == nil || err.Error() != "exit status 3" {
		t.Errorf("%q, %v", out, err)
	}
	if es := entries(t, l); len(es) != 2 || es[1].Exit != 3 {
		t.Errorf("entries: %+v", es)
	}
}

// TestKilled kills a command: it leaves no end, and no part of it continues.
func TestKilled(t *testing.T) {
	t.Parallel()

	for name, s := range map[string]syscall.Signal{"at once": syscall.SIGKILL, "asked": syscall.SIGTERM} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			l := newLedger(t)
			cmd := bash(l.Command(time.Minute, 0), "x-1")
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}

			for len(entries(t, l)) < 3 {
				time.Sleep(5 * time.Millisecond)
			}

			syscall.Kill(-cmd.Process.Pid, s)
			if err := cmd.Wait(); err == nil {
				t.Error("it ended by itself")
			}

			dead := ledger.Now()
			time.Sleep(200 * time.Millisecond)

			for _, e := range entries(t, l) {
				if e.Kind == ledger.End || e.At > dead {
					t.Errorf("after it was killed: %+v", e)
				}
			}
		})
	}
}

func TestTorn(t *testing.T) {
	t.Parallel()

	good := "start\tdefault\tj\t2026-11-22T07:00:00Z\t1\tx-1\t5\t7\t0\n"
	for name, text := range map[string]string{
		"no end":                 good + strings.TrimSuffix(good, "\n"),
		"cut":                    good[:20] + "\n",
		"two in one":             strings.TrimSuffix(good, "\n") + good,
		"an unknown kind":        strings.Replace(good, "start", "stop", 1),
		"no instant":             strings.Replace(good, "2026-11-22T07:00:00Z", "soon", 1),
		"an attempt, no number":  strings.Replace(good, "\t1\t", "\tone\t", 1),
		"an instant, no number":  strings.Replace(good, "\t5\t", "\tlater\t", 1),
		"an empty line":          good + "\n" + good,
		"bytes that are no text": "\x00\xff\n",
	} {
		l := newLedger(t)
		if err := os.WriteFile(l.Path(), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if es, err := l.Entries(); err == nil {
			t.Errorf("%s: read as %+v", name, es)
		}
	}
}

func TestOpen(t *testing.T) {
	t.Parallel()
	if _, err := ledger.Open(filepath.Join(t.TempDir(), "not there", "ledger")); err == nil ||
		!strings.Contains(err.Error(), "blanks") {
		t.Errorf("a path with a blank: %v", err)
	}
	if _, err := ledger.Open(filepath.Join(t.TempDir(), "missing", "ledger")); !os.IsNotExist(err) {
		t.Errorf("a folder that is not there: %v", err)
	}
}
