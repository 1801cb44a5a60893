//go:build unix

package doctor

import "golang.org/x/sys/unix"

// ulimits returns two limits: the open files of this process, and the processes of its user; 0:
// unknown.
func ulimits() (files, processes uint64) {
	var l unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &l) == nil {
		files = uint64(l.Cur)
	}
	if unix.Getrlimit(unix.RLIMIT_NPROC, &l) == nil {
		processes = uint64(l.Cur)
	}
	return files, processes
}

func writable(dir string) error { return unix.Access(dir, unix.W_OK) }

// room returns the free bytes on the disk of a folder.
func room(dir string) (free uint64, ok bool) {
	var fs unix.Statfs_t
	err := unix.Statfs(dir, &fs)
	return uint64(fs.Bavail) * uint64(fs.Bsize), err == nil
}
