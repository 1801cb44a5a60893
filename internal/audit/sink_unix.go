//go:build unix

package audit

import "syscall"

// nonblock makes opening a pipe without a reader fail at once.
const nonblock = syscall.O_NONBLOCK
