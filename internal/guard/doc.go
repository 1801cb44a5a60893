// Package guard keeps a helper process beside a node that outlives it: when the node dies, or is stopped or cut off for
// longer than its lease, the guard kills what the node's commands have started, all of it.
//
//	node ── shared memory: lease, phase, seats ──▶ guard      guard ── when it looked last, lapsed, swept ──▶ node
//	     ── pipe: closes with the node ──────────▶
//	     ── socket: the DSN, once it has looked ──▶
//
// A [Guard] belongs to one session and has one process at a time. That is this program once more (/proc/self/exe) with
// a variable in its environment, which the init function of this package notices: it becomes a guard, and main is never
// reached. A program that embeds a node imports this package by that, and need do nothing; it should only do little in
// init functions of its own, which may run before this one.
//
// # Shared memory, not messages
//
// What the guard must know is a few words for each attempt, written at each start and end of one. In shared memory they
// are true at the instant of a kill -9, none of them is on its way, no reader makes the node wait, and a guard that idles
// costs nothing however much is started. A new guard is handed the running attempts by being given the same memory. The
// pipe carries nothing but its end, and a byte that wakes the guard.
//
// The DSN is not in that memory. A process of the node's own user can read the memory of a guard in its first instants,
// before it has closed itself, and it can make a first instant at any time by killing the guard. So the node sends the DSN
// through a socket, after the guard has looked for the first time. Nobody can open a socket through /proc/PID/fd, and the
// DSN stays in there until it is needed for the burial.
//
// # A seat
//
// An attempt takes a seat before it is asked for the last time whether it may begin, and leaves it when nothing of it
// lives. In between the seat says what there is to kill:
//
//	taken ──▶ inside: the node may be forking, or executes a handler ──▶ forked: the process group ──▶ left
//
// If the node dies between fork and the word that it has forked, the group is unknown, but nobody is overlooked whose
// environment the guard can read: until its exec the child holds the pipe open as its parent did, so that when the pipe closes each child has either ended or
// become a program that bears the launch in its environment. A node that is stopped can begin nothing when it goes on
// unless a seat is inside: whoever takes one later asks for the lease after that, and finds it stale.
//
// # Who belongs to a command
//
// All in its cgroup, where it has one. Otherwise: all in its process group; all whose environment has the launch of a
// taken seat; and their children, sessions and groups, and so on. What escapes a guard without cgroups is a process that
// has cleared its environment, left its group and session, and lost its parent, all before the guard looked for the
// first time. What an attempt left behind on purpose (setsid) and that has ended is left alone.
//
// A guard can read the environment of its own user's processes only, unless it has CAP_SYS_PTRACE, as root has. So where a node
// that is not root runs commands as another user, the environment helps nobody: there, without a cgroup, a process escapes
// that has left its group and session and lost its parent, and so does a command if the node dies between fork and the word
// that it has forked. systemd and containers kill these with the node.
//
// Processes are told apart by their number and start time, and signalled by pidfd or process group; a number that is
// somebody else's by now is not signalled.
//
// # When it acts
//
//	the pipe closes                    SIGTERM; SIGKILL half a second later; until nothing is left in two looks.
//	                                   Then it deletes the session's row, if the node is dead, and ends.
//	the node says the session is lost  it kills its commands itself, once the guard has seen who belongs to whom; the guard
//	                                   sees to what has left their groups.
//	the lease is older than Kill       SIGTERM, SIGKILL after Grace. A node that is still inside a seat after End is
//	                                   killed as well: what it does there could not be stopped otherwise.
//
// A guard buries only the session that it was made for, and only when the node's process is dead: a node that lives, or
// will live on, ends its own session, or its peers do when it expires.
//
// # What each failure does
//
//   - The guard dies, or is stopped: the node starts nothing until it has a new one. What runs goes on. It starts a new one at
//     once when it sees the end of the old one, or that the old one has not looked for a fifth of the session expiry (4 s at
//     most). The new one has to look once, which the node sees within 20 ms; then the node sends it the DSN. Guards that die
//     soon one after the other are replaced after a pause, which grows from 100 ms to 2 s. If none comes for 2 s, because the
//     system has no process left for one, say, the node gives back what it has prepared.
//   - Both are killed: nobody kills the commands, but what watches both (systemd kills the control group). Peers take
//     over when the session expires.
//   - The node dies before it has sent the DSN: the guard kills the commands, but does not bury. Peers take over when the
//     session expires.
//   - A process cannot be killed (it belongs to another user; it hangs in the kernel): the guard does not bury, and gives
//     up when the session has expired elsewhere.
//   - MySQL is away when it is to bury: it tries until the session has expired.
//   - Both are stopped together with the commands, as a suspended machine is: they are killed a moment after they go on.
//
// # Who may talk to it
//
// Commands inherit neither the memory nor the pipe. The guard is in a session of its own, ignores the signals that are
// sent to groups, and is not dumpable, so that its memory and descriptors are closed to its own user. A node has the same
// memory: see [Conceal]. But a command of the node's own user can send SIGKILL to both, as to everything of that user, and
// where the system lets it trace processes, it can attach itself to a guard in its first instants: run commands as another
// user.
package guard
