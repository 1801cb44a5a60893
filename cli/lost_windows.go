package cli

import "golang.org/x/sys/windows"

// The system's errors for a broken or refused connection. On Windows syscall.ECONNRESET and similar
// constants have other values.
const (
	connectionReset   = windows.WSAECONNRESET
	connectionAborted = windows.WSAECONNABORTED
	connectionRefused = windows.WSAECONNREFUSED
)
