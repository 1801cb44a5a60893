//go:build !windows

package cli

import "syscall"

// What the system says of a connection that has broken, or was never made.
const (
	connectionReset   = syscall.ECONNRESET
	connectionAborted = syscall.ECONNABORTED
	connectionRefused = syscall.ECONNREFUSED
)
