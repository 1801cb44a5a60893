// Package privilege keeps the rights of a node from the programs that it starts. A node that is not root needs
// capabilities to run commands as another user, and a program that is started by a thread with ambient or inheritable
// capabilities would get them too.
package privilege

import (
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// Switching are the capabilities that a node needs to run commands as another user, and to kill them.
const Switching = 1<<unix.CAP_SETUID | 1<<unix.CAP_SETGID | 1<<unix.CAP_KILL

// Has reports whether this process may use all of these capabilities, each a bit. All of them are among the first 32.
func Has(capabilities uint32) bool {
	sets, err := get()
	return err == nil && sets[0].Effective&capabilities == capabilities
}

// Guarding are the capabilities that the guard needs to kill commands of another user, and that a node can give it.
// A guard of root has them anyway.
func Guarding() []uintptr {
	if os.Geteuid() == 0 || !Has(1<<unix.CAP_KILL) {
		return nil
	}
	return []uintptr{unix.CAP_KILL}
}

// Start calls start, which starts a program, on a thread without ambient and inheritable capabilities. The thread does
// not get them back: nothing else in this process needs them.
func Start(start func()) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	drop()
	start()
}

// StartConfined is Start on a thread with no_new_privs: no setuid or setgid bit and no capability of a file raises what
// the program, or anything that it starts, may do. A thread cannot lose the bit, so it ends with this.
func StartConfined(start func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked: the end of the goroutine ends the thread, and Go copies no locked thread
		drop()
		// Every kernel since 3.5 has it, and takes it from anybody.
		if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
			panic("no_new_privs: " + err.Error())
		}
		start()
	}()
	<-done
}

// drop takes the ambient and inheritable capabilities from this thread. Giving up a capability is always allowed; a
// kernel before 4.3 has no ambient ones.
func drop() {
	_ = unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
	sets, err := get()
	if err != nil || sets[0].Inheritable == 0 && sets[1].Inheritable == 0 {
		return
	}
	sets[0].Inheritable, sets[1].Inheritable = 0, 0
	_ = unix.Capset(header(), &sets[0])
}

// get reads the sets of this thread, those of capabilities below 32 first.
func get() (sets [2]unix.CapUserData, err error) {
	err = unix.Capget(header(), &sets[0])
	return sets, err
}

func header() *unix.CapUserHeader {
	return &unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
}
