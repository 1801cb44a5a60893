// Package privatedb runs a MariaDB or MySQL server of one's own: data in one folder, a unix socket, no system
// service, no port unless asked for, gone with the process that started it.
//
// Three processes take part:
//
//	parent ──pipe──▶ watcher (sh)     knows which process group to end when the pipe closes
//	   └─────────▶ server (mariadbd)  leads that group
//
// The kernel closes the pipe however the parent ends (return, os.Exit, panic, kill -9), so the watcher needs no
// signal handler, no timer and no help from the parent. Linux's parent-death signal would be shorter, but it fires
// when the thread that forked ends, is lost when the server changes its user, and exists on Linux only.
//
// The folder holds:
//
//	data/         the server's data folder (0700), with its socket in it: "sock"
//	tmp/          the server's temporary tables
//	parent.lock   flock of the parent: two parents never share a folder
//	server.lock   flock inherited by the server: taken as long as any server of this folder lives
//	server.pid    process group of the last server started
//	server.log    what the servers wrote
//
// What each failure does:
//
//   - The parent dies: the watcher ends the server (TERM, after 20 s KILL) and removes a temporary folder.
//   - The parent dies before the server was announced to the watcher: the server was not yet let go, see launcher.
//   - The parent and the watcher die: the server lives on. The next Start on the folder finds server.lock taken,
//     ends the process named in server.pid once it is sure who that is, and goes on.
//   - The first start is cut short: the data folder is made under another name and renamed when complete; the next
//     Start throws the leftover away.
//   - The server dies: Wait returns; Restart brings it back on the same data.
package privatedb
