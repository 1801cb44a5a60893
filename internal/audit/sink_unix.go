//go:build unix

package audit

import "syscall"

// nonblock makes the opening of a pipe fail at once if the pipe has no reader.
const nonblock = syscall.O_NONBLOCK
