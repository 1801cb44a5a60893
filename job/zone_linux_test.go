package job

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// TestZonesInABareContainer runs a program where there is no file but itself: the zones are in it.
func TestZonesInABareContainer(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	build := exec.Command("go", "build", "-buildvcs=false", "-o", filepath.Join(root, "zones"), "./testdata/zones")
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}

	run := exec.Command("/zones", "Europe/Berlin", "china standard time", "America/Argentina/Buenos_Aires",
		"Europe/Berln")
	run.Env, run.Dir = []string{}, "/"
	run.SysProcAttr = &syscall.SysProcAttr{Chroot: root}
	if os.Getuid() != 0 { // then as root of a user namespace, where that is allowed
		run.SysProcAttr.Cloneflags = syscall.CLONE_NEWUSER
		run.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}
	}

	out, err := run.CombinedOutput()
	if errors.Is(err, syscall.EPERM) {
		t.Skip("this system lets nobody but root change the root folder")
	}

	const want = "Europe/Berlin +02:00\nAsia/Shanghai +08:00\nAmerica/Argentina/Buenos_Aires -03:00\n" +
		"time zone \"Europe/Berln\" is unknown; did you mean Europe/Berlin?\nfiles: 1 <nil>\n"
	if err != nil || string(out) != want {
		t.Errorf("got %v\n%s, want\n%s", err, out, want)
	}
}
