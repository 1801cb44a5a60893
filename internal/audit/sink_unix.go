//go:build unix

package audit

import "syscall"

// nonblock has a pipe that nobody reads fail at once.
const nonblock = syscall.O_NONBLOCK
