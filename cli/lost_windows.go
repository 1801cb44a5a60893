package cli

import "golang.org/x/sys/windows"

// What the system says of a connection that has broken, or was never made: not what syscall calls ECONNRESET.
const (
	connectionReset   = windows.WSAECONNRESET
	connectionAborted = windows.WSAECONNABORTED
	connectionRefused = windows.WSAECONNREFUSED
)
