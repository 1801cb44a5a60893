//go:build failpoint

package failpoint

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// TestPoints lets child processes end at points. Run it with -tags failpoint.
func TestPoints(t *testing.T) {
	if os.Getenv("FAILPOINT_TEST") != "" {
		for range 2 {
			var trail Trail
			Here("before", "fork")
			trail.Before("claim")
			trail.Before("claim")
			trail.Before("take locks")
			trail.Commit()
			trail.Committed()
		}

		os.Exit(0)
	}

	for point, want := range map[string]string{
		"before fork:1":       "before fork\n",
		"before claim:2":      "before fork\nbefore claim\n",
		"commit take locks:1": "before fork\nbefore claim\nbefore take locks\ncommit claim\ncommit take locks\n",
		"committed claim:1": "before fork\nbefore claim\nbefore take locks\n" +
			"commit claim\ncommit take locks\ncommitted claim\n",
		"committed claim:2": "before fork\nbefore claim\nbefore take locks\n" +
			"commit claim\ncommit take locks\ncommitted claim\ncommitted take locks\n",
		"committed claim:3":      "all",
		"nothing of that name:1": "all",
	} {
		log := filepath.Join(t.TempDir(), "log")
		cmd := exec.Command(os.Args[0], "-test.run", "TestPoints")
		cmd.Env = append(os.Environ(), "FAILPOINT_TEST=1", Variable+"="+point, LogVariable+"="+log)
		err := cmd.Run()
		status := cmd.ProcessState.Sys().(syscall.WaitStatus)
		passed, _ := os.ReadFile(log)
		switch {
		case want == "all" && err != nil:
			t.Errorf("%s: ended with %v", point, err)
		case want != "all" && (!status.Signaled() || status.Signal() != syscall.SIGKILL):
			t.Errorf("%s: ended with %v, want killed", point, err)
		case want != "all" && string(passed) != want:
			t.Errorf("%s: passed %q, want %q", point, passed, want)
		}
	}

	for _, text := range []string{"claim", "claim:0", ":1", "claim:x"} {
		cmd := exec.Command(os.Args[0], "-test.run", "TestPoints")
		cmd.Env = append(os.Environ(), "FAILPOINT_TEST=1", Variable+"="+text)
		if err := cmd.Run(); err == nil || cmd.ProcessState.ExitCode() != 2 {
			t.Errorf("%s: ended with %v, want exit code 2", text, err)
		}
	}
}
