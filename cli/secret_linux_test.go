package cli

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// openTerminal returns a terminal, and its other end, where a test types and reads.
func openTerminal(t *testing.T) (master, tty *os.File) {
	t.Helper()

	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { master.Close() })

	if err := unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}

	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}

	tty, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tty.Close() })
	return master, tty
}

// TestQuestionsNameTheCluster: whoever is asked before a deletion sees in which cluster it is.
func TestQuestionsNameTheCluster(t *testing.T) {
	t.Parallel()

	const would = `{"dry_run":true,"changed":1,"items":[{"id":"12","app":"ops","name":"a/b","result":"changed"}]}`
	f := newFakeAPI(t, map[string]func(*http.Request) (int, string){
		"GET /api/v1/jobs/12": always(200, fakeJob), "POST /api/v1/bulk/delete": always(200, would),
	})
	for line, want := range map[string]string{
		"job rm 12":        "Delete ops/a/b (id 12) at " + f.URL + "? [y/N]",
		"job rm --app ops": "This affects 1 job at " + f.URL + ": ops/a/b. Continue? [y/N]",
	} {
		master, tty := openTerminal(t)
		if _, err := master.WriteString("n\n"); err != nil {
			t.Fatal(err)
		}

		var out, errs strings.Builder
		code := Main(append(strings.Fields(line), "--server", f.URL), tty, &out, &errs)
		if code != exitFailed || !strings.Contains(errs.String(), want) {
			t.Errorf("%s: got code %d, %s; want %q", line, code, errs.String(), want)
		}
	}
}

// TestHiddenIsInterrupted: Ctrl-C at the prompt restores the echo of the terminal.
func TestHiddenIsInterrupted(t *testing.T) {
	caught := make(chan os.Signal, 1)
	signal.Notify(caught, os.Interrupt) // an early signal must not end the tests
	defer signal.Stop(caught)

	master, tty := openTerminal(t)
	shows := func() bool {
		state, err := unix.IoctlGetTermios(int(tty.Fd()), unix.TCGETS)
		if err != nil {
			t.Fatal(err)
		}
		return state.Lflag&unix.ECHO != 0
	}
	if !term.IsTerminal(int(tty.Fd())) || !shows() {
		t.Fatal("it is no terminal that shows what is typed")
	}

	ended := make(chan error, 1)
	go func() { _, err := readHidden(context.Background(), int(tty.Fd())); ended <- err }()
	for end := time.Now().Add(20 * time.Second); shows(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it shows what is typed")
		}
	}

	if err := syscall.Kill(os.Getpid(), syscall.SIGINT); err != nil {
		t.Fatal(err)
	}

	select {
	case err := <-ended:
		if err == nil || !strings.Contains(err.Error(), "interrupt") {
			t.Errorf("got %v", err)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("it goes on")
	}

	if !shows() {
		t.Error("the terminal does not show what is typed")
	}

	_, _ = master.WriteString("\n") // ends the pending read
}
