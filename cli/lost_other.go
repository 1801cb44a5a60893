//go:build !windows

package cli

import "syscall"

// The system's errors for a broken or refused connection.
const (
	connectionReset   = syscall.ECONNRESET
	connectionAborted = syscall.ECONNABORTED
	connectionRefused = syscall.ECONNREFUSED
)
