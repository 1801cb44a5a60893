package cli

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// raceFlags are the build flags of the race detector, if the test itself uses it.
var raceFlags []string

var binaryDir string

func TestMain(m *testing.M) {
	time.Local = time.UTC // tables use the local time zone
	os.Exit(func() int {
		var err error
		if binaryDir, err = os.MkdirTemp("", "gocrontab-cli-"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(binaryDir)
		os.Setenv("XDG_CONFIG_HOME", filepath.Join(binaryDir, "config")) // ignore the developer's own contexts
		return m.Run()
	}())
}

// buildBinary builds the program once for all tests.
var buildBinary = sync.OnceValues(func() (string, error) {
	path := filepath.Join(binaryDir, "go-crontab")
	args := append([]string{"build", "-buildvcs=false", "-ldflags", "-X go-crontab/cli.version=test"}, raceFlags...)
	out, err := exec.Command("go", append(args, "-o", path, "go-crontab")...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build the program: %w\n%s", err, out)
	}
	return path, nil
})

func binary(t *testing.T) string {
	t.Helper()
	path, err := buildBinary()
	if err != nil {
		t.Fatal(err)
	}
	return path
}
