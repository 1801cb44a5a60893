package cli

import "golang.org/x/sys/windows"

// The system's errors for a broken or refused connection. They differ from syscall.ECONNRESET and
// the like.
const (
	connectionReset   = windows.WSAECONNRESET
	connectionAborted = windows.WSAECONNABORTED
	connectionRefused = windows.WSAECONNREFUSED
)
