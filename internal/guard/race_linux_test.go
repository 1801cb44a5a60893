package guard

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// The test binary can be started as a thief: a job of the node's own user that looks for the DSN.
const asThief = "GUARD_TEST_THIEF"

// theft tells a thief what to steal.
type theft struct {
	Node   int    // process id
	Needle string // a part of the DSN
	Rounds int    // number of guards to kill
}

// thief repeatedly kills the guard of a node, and reads all that the next guard shows in its first
// instants. It keeps the files that it could open, and reads them again after the node has sent the
// DSN.
func (j theft) thief() {
	for round := range j.Rounds {
		old := j.await(0)
		_ = unix.Kill(old, unix.SIGKILL)

		var opened []*os.File
		next := j.await(old)
		for end := time.Now().Add(300 * time.Millisecond); time.Now().Before(end); {
			more := j.open(next)
			opened = append(opened, more...)
			j.search(round, opened)
			if len(more) == 0 && len(opened) > 0 {
				time.Sleep(10 * time.Millisecond) // the guard has protected itself: now the node sends the DSN
			}
		}

		fmt.Printf("round %d: %d files of guard %d could be opened\n", round, len(opened), next)
		for _, f := range opened {
			f.Close()
		}
	}

	fmt.Println("found nothing")
}

// await returns the node's next guard after the given one.
func (j theft) await(other int) int {
	for {
		all, _, err := processes()
		if err != nil {
			panic(err)
		}
		for pid, p := range all {
			if p.ppid == j.Node && p.alive() && pid != other && isGuard(pid) {
				return pid
			}
		}
	}
}

// isGuard reports whether a process has become a guard. Before its exec it is a copy of the node,
// which is protected.
func isGuard(pid int) bool {
	line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return bytes.HasPrefix(line, []byte(comm)) || isComm(pid)
}

// open opens all that a process shows, above all its open files.
func (j theft) open(pid int) (files []*os.File) {
	dir := fmt.Sprintf("/proc/%d/", pid)
	for _, name := range []string{"fd/3", "fd/4", "fd/5", "environ"} {
		if f, err := os.OpenFile(dir+name, os.O_RDONLY|unix.O_NONBLOCK, 0); err == nil {
			files = append(files, f)
		}
	}
	return files
}

// search reads files that were opened earlier.
func (j theft) search(round int, files []*os.File) {
	text := make([]byte, 1<<20)
	for _, f := range files {
		n, err := unix.Pread(int(f.Fd()), text, 0)
		if err == unix.ESPIPE {
			n, _ = unix.Read(int(f.Fd()), text)
		}
		if n > 0 && j.found(text[:n]) {
			fmt.Printf("FOUND in round %d\n", round)
			os.Exit(0)
		}
	}
}

// found reports whether a text contains the needle, plain or in base64, which is how JSON encodes
// bytes.
func (j theft) found(text []byte) bool {
	if bytes.Contains(text, []byte(j.Needle)) {
		return true
	}
	encoded, err := json.Marshal([]byte(j.Needle))
	if err != nil {
		panic(err)
	}
	return bytes.Contains(text, bytes.Trim(encoded, `"=`))
}

// TestDSNOfAStartingGuard has a job of the node's own user kill the guard and read the next one in
// its first instants. The kernel allows that to the user, as the program file may be read.
func TestDSNOfAStartingGuard(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "guard-race-")
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}

	program := filepath.Join(dir, "program")
	if out, err := exec.Command("install", "-m", "755", os.Args[0], program).CombinedOutput(); err != nil {
		t.Fatal(err, string(out))
	}

	attr := &syscall.SysProcAttr{Setpgid: true}
	if os.Geteuid() == 0 { // root may read every process
		attr.Credential = &syscall.Credential{Uid: 65534, Gid: 65534}
	}

	const dsn = "PLANTED-DSN-OF-A-NODE" // 21 bytes, so that base64 needs no padding
	s := newStubOf(t, program, attr, func(c *stubConfig) { c.DSN = dsn })
	job, err := json.Marshal(theft{Node: s.cmd.Process.Pid, Needle: dsn, Rounds: 6})
	if err != nil {
		t.Fatal(err)
	}

	cmd := exec.Command(program)
	cmd.Env, cmd.SysProcAttr = append(os.Environ(), asThief+"="+string(job)), attr
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.HasSuffix(string(out), "found nothing\n") {
		t.Errorf("%v, a job of the node's own user says:\n%s", err, out)
	}

	t.Log(string(out))
	s.order("alive") // there is a guard again
}
