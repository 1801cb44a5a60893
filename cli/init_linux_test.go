package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// alone starts the program as process 1 of its own PID namespace, like a container.
func alone(t *testing.T, env []string, args ...string) *process {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("wants root, to make a space of process ids")
	}
	return startCommand(t, env,
		append([]string{"unshare", "--pid", "--fork", "--mount-proc", "--kill-child", binary(t)}, args...)...)
}

// children returns the child processes of pid.
func children(t *testing.T, pid int) (pids []int) {
	t.Helper()

	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid)) // one file per thread
	if err != nil {
		t.Fatal(err)
	}

	var list strings.Builder
	for _, file := range files {
		b, _ := os.ReadFile(file) // a thread may end
		list.Write(b)
	}

	for _, word := range strings.Fields(list.String()) {
		pid, err := strconv.Atoi(word)
		if err != nil {
			t.Fatal(err)
		}
		pids = append(pids, pid)
	}

	return pids
}

func TestProcess1IsAnInit(t *testing.T) {
	t.Parallel()

	dsn := migrated(t)
	listen := fmt.Sprint("127.0.0.1:", freePort(t))
	env := []string{
		"GOCRONTAB_DSN=" + dsn, "GOCRONTAB_STATE_DIR=" + t.TempDir(), "GOCRONTAB_LISTEN=" + listen,
		"GOCRONTAB_NODE=one", "GOCRONTAB_LOG_FORMAT=json",
	}

	// A killed node is cleaned up before the container ends, and the container returns its exit
	// status.
	p := alone(t, env, "serve")
	p.says(`"msg":"the guard is running"`, 30*time.Second)
	await(t, "ready", 30*time.Second, func() bool { return status("http://"+listen+"/readyz") == 200 })
	first := children(t, p.cmd.Process.Pid)
	if len(first) != 1 {
		t.Fatalf("unshare has the children %v, want process 1", first)
	}

	var node int
	for _, pid := range children(t, first[0]) {
		args, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
		if strings.HasSuffix(string(args), "\x00serve\x00") {
			node = pid
		}
	}

	if node == 0 {
		t.Fatalf("process 1 has no child that serves")
	}
	if err := syscall.Kill(node, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if code := p.exit(30 * time.Second); code != 128+int(syscall.SIGKILL) {
		t.Errorf("the container ended with %d, want 137", code)
	}

	p.says(`"msg":"guard: ended the session of the dead node","node":"one"`, time.Second)

	// A container is stopped by a signal to process 1, and the node drains.
	p = alone(t, env, "serve")
	await(t, "ready", 30*time.Second, func() bool { return status("http://"+listen+"/readyz") == 200 })
	if err := syscall.Kill(children(t, p.cmd.Process.Pid)[0], syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := p.exit(30 * time.Second); code != exitOK || !strings.Contains(p.out.String(), `"msg":"stopped"`) {
		t.Errorf("code %d, want a drain", code)
	}

	// Other exit codes are passed through.
	if code := alone(t, nil, "job", "ls", "--bad").exit(30 * time.Second); code != exitUsage {
		t.Errorf("code %d, want %d", code, exitUsage)
	}
}
