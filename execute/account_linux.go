package execute

import (
	"os"

	"golang.org/x/sys/unix"
)

// maySwitch tells whether this process may have a command run as another user, and kill it: root may, if its container
// has left it the capabilities. They are not enough without being root: who is not would hand them on to the command.
func maySwitch() bool {
	const needed = 1<<unix.CAP_SETUID | 1<<unix.CAP_SETGID | 1<<unix.CAP_KILL
	var data [2]unix.CapUserData
	err := unix.Capget(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &data[0])
	return os.Geteuid() == 0 && err == nil && data[0].Effective&needed == needed
}
