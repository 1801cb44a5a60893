//go:build !linux

package execute

import "os"

// maySwitch tells whether this process may have a command run as another user, and kill it.
func maySwitch() bool { return os.Geteuid() == 0 }
