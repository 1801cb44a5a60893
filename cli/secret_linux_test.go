package cli

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// TestHiddenIsInterrupted: Ctrl-C at the prompt restores the echo of the terminal.
func TestHiddenIsInterrupted(t *testing.T) {
	caught := make(chan os.Signal, 1)
	signal.Notify(caught, os.Interrupt) // an early signal must not end the tests
	defer signal.Stop(caught)

	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip(err)
	}
	defer master.Close()

	if err := unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}

	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}

	tty, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer tty.Close()

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
