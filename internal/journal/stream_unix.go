//go:build unix

package journal

import (
	"fmt"
	"os"
	"syscall"
)

// Reads reports whether systemd's journal reads a file. JOURNAL_STREAM alone does not show that,
// because a child process inherits the variable, but its output may go elsewhere.
func Reads(file *os.File) bool {
	stream := os.Getenv("JOURNAL_STREAM")
	var s syscall.Stat_t
	if stream == "" || syscall.Fstat(int(file.Fd()), &s) != nil {
		return false
	}
	return stream == fmt.Sprintf("%d:%d", s.Dev, s.Ino)
}
