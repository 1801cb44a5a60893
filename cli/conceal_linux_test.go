package cli

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestNodesAreConcealed looks for a node's secrets as a process of the node's own user.
func TestNodesAreConcealed(t *testing.T) {
	t.Parallel()

	dir, err := os.MkdirTemp("", "gocrontab-concealed-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })

	var as []string
	if os.Geteuid() == 0 { // root may read everything
		as = []string{"setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"}
		if err := os.Chown(dir, 65534, 65534); err != nil {
			t.Fatal(err)
		}
	}

	program := filepath.Join(dir, "go-crontab") // a place that this user may read
	if out, err := exec.Command("install", "-m", "755", binary(t), program).CombinedOutput(); err != nil {
		t.Fatal(err, string(out))
	}

	p := startCommand(t, []string{
		"GOCRONTAB_DSN=root:rabbit@tcp(127.0.0.1:1)/cron", "GOCRONTAB_STATE_DIR=" + filepath.Join(dir, "state"),
	},
		append(as, program, "serve", "--node", "one", "--listen", "127.0.0.1:0", "--log-format", "json")...)

	p.says(`"msg":"serving"`, 20*time.Second)
	for _, file := range []string{"environ", "mem"} {
		path := fmt.Sprintf("/proc/%d/%s", p.cmd.Process.Pid, file)
		out, err := exec.Command("env", append(as, "head", "-c", "1", path)...).CombinedOutput()
		if err == nil || !strings.Contains(string(out), "Permission denied") {
			t.Errorf("%s: got %q, %v, want that it is closed", path, out, err)
		}
	}
}
