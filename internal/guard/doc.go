// Package guard keeps a helper process next to a node. The guard outlives the node. The node may
// die, or be stopped or cut off for longer than its lease. Then the guard kills all processes that
// the node's commands have started.
//
//	node ── shared memory: lease, phase, seats ──▶ guard   guard ── last look, lapsed, swept ──▶ node
//	     ── pipe: closes with the node ──────────▶
//	     ── socket: the DSN, after the first look ─▶
//
// A [Guard] belongs to one session and has one process at a time. The process is a second copy of
// this program (/proc/self/exe) with a variable in its environment. The init function of this
// package sees the variable and runs the guard; main is never reached. A program that embeds a node
// imports this package indirectly and need do nothing more. Its own init functions may run before
// this one, so they should do little.
//
// # Shared memory, not messages
//
// The guard needs a few words of memory for each attempt, written when the attempt starts and
// ends. Shared memory is up to date at the instant of a kill -9, and no data are in transit. No
// slow reader delays the node, and an idle guard costs nothing, even if many attempts start. A new
// guard gets the same memory, so it knows the running attempts. The pipe carries only bytes that
// wake the guard. When it closes, the guard knows that the node has ended.
//
// The DSN is not in that memory. In its first instants, before a guard has protected itself, a
// process of the node's own user can read the guard's memory. Such a process can bring about these
// instants at any time by killing the guard. So the node sends the DSN through a socket, after the
// guard's first look. A socket cannot be opened through /proc/PID/fd. The DSN stays in it until
// the guard buries the session, that is, deletes the session's row.
//
// # A seat
//
// An attempt takes a seat before the last check whether it may begin. It leaves the seat when all
// its processes are dead. In between, the seat tells the guard what to kill:
//
//	taken ──▶ inside: the node forks, or executes a handler ──▶ forked: the process group ──▶ left
//
// If the node dies after a fork and before it writes the process group, the group is unknown. The
// guard still finds every process whose environment it can read. Until its exec, the child holds
// the pipe open, as its parent did. So when the pipe closes, each child has either ended, or
// become a program with the id of the run in its environment.
//
// A node that was stopped and goes on checks the lease after it takes a seat. It finds the lease
// stale, so it can begin nothing in a seat that it takes now. It can begin something only in a
// seat that was already inside.
//
// # Processes of a command
//
// If a command has a cgroup, every process in it is the command's. Without a cgroup, the command's
// processes are the members of its process group, and the processes with the run of a taken seat
// in their environment. The children of these processes, and the members of their sessions and
// groups, are the command's, too. Without cgroups, a process escapes if it has cleared its
// environment, left its group and session, and lost its parent, all before the guard's first look.
// A process that an ended attempt left running on purpose (setsid) is left alone.
//
// A guard can read environments only of its own user's processes, unless it has CAP_SYS_PTRACE, as
// root has. So the environment does not help if a node that is not root runs commands as another
// user. Without a cgroup, a process of such a command escapes if it has left its group and session
// and lost its parent. Such a command also escapes if the node dies after the fork and before it
// writes the process group. systemd and containers kill these processes with the node.
//
// The guard identifies processes by number and start time, and signals them by pidfd or process
// group. If another process has the number by now, the guard does not signal it.
//
// # When it acts
//
//	the pipe closes              SIGTERM, SIGKILL after half a second, until two looks find nothing.
//	                             Then it deletes the session's row, if the node is dead, and ends.
//	the node lost the session    The node kills its commands itself, once the guard has seen which
//	                             processes are theirs. The guard kills the rest.
//	the lease is older than Kill SIGTERM, SIGKILL after Grace. A node that is still inside a seat
//	                             after End is killed too: only that stops its work there.
//
// A guard buries only its own session, and only when the node's process is dead. A living node
// ends its own session. If it does not, its peers bury the session when it expires.
//
// # Failures
//
//   - The guard dies, or is stopped: the node starts nothing until it has a new one. Running
//     attempts go on. The node starts a new guard as soon as it sees the end of the old one, or
//     that the old one has not looked for a fifth of the session expiry (4 s at most). It sees the
//     new one's first look within 20 ms, and then sends the DSN. If guards die in quick succession
//     the node pauses before each new one, from 100 ms up to 2 s. If there is no guard for 2 s, for
//     example because the system has no process left, the node gives its prepared runs back.
//   - Both are killed: the commands are not killed, except by a supervisor of both (systemd kills
//     the control group). Peers take over when the session expires.
//   - The node dies before it has sent the DSN: the guard kills the commands, but does not bury the
//     session. Peers take over when it expires.
//   - A process cannot be killed because it belongs to another user or hangs in the kernel: the
//     guard does not bury the session. It gives up when the session has expired elsewhere.
//   - MySQL is away at the burial: the guard retries until the session has expired.
//   - Both are stopped together with the commands, as when a machine is suspended: the commands are
//     killed a moment after they go on.
//
// # Access
//
// Commands inherit neither the memory nor the pipe. The guard has a session of its own and ignores
// the signals that are sent to groups. It is not dumpable, so other processes of its user cannot
// open its memory and descriptors. The node's copy of the memory is protected by [Conceal]. But a
// command of the node's own user can send SIGKILL to both, as to any process of that user. Where
// the system allows tracing, it can also attach to a guard in its first instants. So run commands
// as another user.
package guard
