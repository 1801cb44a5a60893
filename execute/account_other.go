//go:build !linux

package execute

import "os"

// maySwitch reports whether this process may run a command as another user, and kill it.
func maySwitch() bool { return os.Geteuid() == 0 }
