// Package privilege keeps the rights of a node from the programs that it starts. A node that is
// not root needs capabilities to run commands as another user. If a thread has ambient or
// inheritable capabilities, each program that it starts gets them, too.
package privilege

import (
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// Switching is the set of capabilities that a node needs to run commands as another user, and to
// kill them.
const Switching = 1<<unix.CAP_SETUID | 1<<unix.CAP_SETGID | 1<<unix.CAP_KILL

// Has reports whether this process has all given capabilities. Each capability is a bit, so only
// the first 32 fit.
func Has(capabilities uint32) bool {
	sets, err := get()
	return err == nil && sets[0].Effective&capabilities == capabilities
}

// Guarding returns the capabilities that the node passes to its guard, which kills commands of
// other users. It returns nil if the node cannot pass them. For root it also returns nil, because
// root's guard has all capabilities anyway.
func Guarding() []uintptr {
	if os.Geteuid() == 0 || !Has(1<<unix.CAP_KILL) {
		return nil
	}
	return []uintptr{unix.CAP_KILL}
}

// Start calls start on a thread without ambient and inheritable capabilities, to start a program.
// The thread never gets these capabilities back, because no other code of this process needs them.
func Start(start func()) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	drop()
	start()
}

// StartConfined is Start on a thread with no_new_privs. With this flag, setuid and setgid bits and
// capabilities of files do not raise the rights of the program or its children. A thread cannot
// lose the flag, so the thread ends afterwards.
func StartConfined(start func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)

		// Never unlock the thread, so that it ends with the goroutine. Go makes no new thread from
		// a locked one, so no other thread inherits the flag.
		runtime.LockOSThread()
		drop()

		// Every kernel since 3.5 supports the flag and requires no privilege for it.
		if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
			panic("no_new_privs: " + err.Error())
		}

		start()
	}()

	<-done
}

// drop removes the ambient and inheritable capabilities of this thread, which is always allowed. A
// kernel before 4.3 has no ambient capabilities.
func drop() {
	_ = unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
	sets, err := get()
	if err != nil || sets[0].Inheritable == 0 && sets[1].Inheritable == 0 {
		return
	}
	sets[0].Inheritable, sets[1].Inheritable = 0, 0
	_ = unix.Capset(header(), &sets[0])
}

// get returns the capability sets of this thread. The first element has the capabilities below 32.
func get() (sets [2]unix.CapUserData, err error) {
	err = unix.Capget(header(), &sets[0])
	return sets, err
}

func header() *unix.CapUserHeader {
	return &unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
}
