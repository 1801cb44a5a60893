// Package privatedb runs a private MariaDB or MySQL server. All its data is in one folder. The
// server listens on a unix socket, and on a port only on request. It is no system service, and ends
// with the process that started it.
//
// Three processes take part:
//
//	parent ──pipe──▶ watcher (sh)     knows the process group to end when the pipe closes
//	   └─────────▶ server (mariadbd)  leads that group
//
// The kernel closes the pipe at any end of the parent (return, os.Exit, panic, kill -9). So the
// watcher needs no signal handler, no timer and no help from the parent. The parent-death signal
// would be simpler, but it exists only on Linux. It also fires when the forking thread ends, and
// is lost when the server changes its user.
//
// The folder holds:
//
//	data/         the server's data folder (0700), with its socket "sock"
//	tmp/          the server's temporary tables
//	parent.lock   flock of the parent: two parents never share a folder
//	server.lock   flock that servers inherit: taken while any server of this folder lives
//	server.pid    process group of the last server
//	server.log    the log of all servers
//
// Failures:
//
//   - The parent dies: the watcher ends the server (TERM, after 20 s KILL) and removes a temporary
//     folder.
//   - The parent dies before it has announced the server to the watcher: the server has not been
//     started yet and never will be, see launcherScript.
//   - The parent and the watcher die: the server lives on. The next Start on the folder finds
//     server.lock taken, checks the process named in server.pid, ends it, and goes on.
//   - The first start is interrupted: the incomplete data folder still has a temporary name. The
//     next Start removes it and makes a new one.
//   - The server dies: Wait returns. Restart starts it again on the same data.
package privatedb
