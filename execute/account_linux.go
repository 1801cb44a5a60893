package execute

import "golang.org/x/sys/unix"

// maySwitch tells whether this process may have a command run as another user. It must be able to kill it as well:
// being root is not the point, these three capabilities are.
func maySwitch() bool {
	const needed = 1<<unix.CAP_SETUID | 1<<unix.CAP_SETGID | 1<<unix.CAP_KILL
	var data [2]unix.CapUserData
	err := unix.Capget(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &data[0])
	return err == nil && data[0].Effective&needed == needed
}
