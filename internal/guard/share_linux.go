package guard

import (
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"go-crontab/internal/privilege"
)

// Supported reports whether this system has guards.
const Supported = true

// share makes memory that can be shared with another process. The memory is sealed so that it
// cannot shrink, because that would crash its readers.
func share(size int) (*os.File, []byte, error) {
	const name, flags = "go-crontab guard", unix.MFD_CLOEXEC | unix.MFD_ALLOW_SEALING
	fd, err := unix.MemfdCreate(name, flags|unix.MFD_NOEXEC_SEAL)
	if err == unix.EINVAL { // Linux before 6.3 does not know the flag, and does not need it
		fd, err = unix.MemfdCreate(name, flags)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("make shared memory: %w", err)
	}

	f := os.NewFile(uintptr(fd), "shared memory")
	if err = f.Truncate(int64(size)); err == nil {
		_, err = unix.FcntlInt(f.Fd(), unix.F_ADD_SEALS, unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_SEAL)
	}

	var b []byte
	if err == nil {
		b, err = unix.Mmap(fd, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	}

	if err != nil {
		_ = f.Close()
		return nil, nil, fmt.Errorf("make shared memory: %w", err)
	}

	return f, b, nil
}

// socketPair makes two connected sockets. The second one is for a child.
func socketPair() (own, child *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("make a pair of sockets: %w", err)
	}
	return os.NewFile(uintptr(fds[0]), "socket"), os.NewFile(uintptr(fds[1]), "socket"), nil
}

// mayKill gives the guard the one capability of the node that it needs: the right to kill commands
// that run as another user.
func mayKill(attr *syscall.SysProcAttr) { attr.AmbientCaps = privilege.Guarding() }

func unshare(b []byte) { _ = unix.Munmap(b) }
