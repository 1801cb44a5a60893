package privilege

import (
	"os"
	"os/exec"
	"regexp"
	"testing"

	"golang.org/x/sys/unix"
)

// TestStart gives this process an inheritable and ambient capability, as systemd does with
// AmbientCapabilities. Programs that it starts must get neither, and only a confined program has
// no_new_privs.
func TestStart(t *testing.T) {
	if os.Getenv("PRIVILEGE_TEST") != "" {
		show(t)
		return
	}

	if !Has(Switching) || os.Geteuid() != 0 {
		t.Skip("needs root with CAP_SETUID, CAP_SETGID and CAP_KILL")
	}

	sets := "+setuid,+setgid,+kill"
	cmd := exec.Command("setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "--inh-caps", sets,
		"--ambient-caps", sets,
		program(t), "-test.run=^TestStart$", "-test.v")
	cmd.Env = append(os.Environ(), "PRIVILEGE_TEST=1")
	out, err := cmd.CombinedOutput()
	t.Log(string(out))
	if err != nil {
		t.Error(err)
	}
}

// program returns a copy of the test binary that every user can execute.
func program(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "privilege-")
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("install", "-m", "755", os.Args[0], dir+"/program").CombinedOutput(); err != nil {
		t.Fatal(err, string(out))
	}

	return dir + "/program"
}

// show is the part of TestStart in the process with the capabilities.
func show(t *testing.T) {
	if !Has(Switching) {
		t.Fatal("the test has not got the capabilities that it was to have")
	}
	if given := Guarding(); len(given) != 1 || given[0] != unix.CAP_KILL {
		t.Errorf("a guard gets %v, want CAP_KILL", given)
	}

	var status string
	start := func() {
		out, err := exec.Command("cat", "/proc/self/status").Output()
		if err != nil {
			t.Error(err)
		}
		status = string(out)
	}

	const all = "Cap(Inh|Prm|Eff|Amb)"
	for name, tc := range map[string]struct {
		with   func(func())
		noNew  string
		capped bool
	}{
		"by itself": {func(start func()) { start() }, "0", false},
		"Start":     {Start, "0", true},
		"confined":  {StartConfined, "1", true},
	} {
		tc.with(start)
		none := regexp.MustCompile(`(?m)^`+all+`:\t0{16}$`).FindAllString(status, -1)
		if tc.capped && len(none) != 4 {
			t.Errorf("%s: the program has capabilities:\n%s", name, status)
		}
		if !regexp.MustCompile(`(?m)^NoNewPrivs:\t` + tc.noNew + `$`).MatchString(status) {
			t.Errorf("%s: want NoNewPrivs %s in\n%s", name, tc.noNew, status)
		}
	}

	if !Has(Switching) {
		t.Error("the process itself has lost its capabilities")
	}
}
