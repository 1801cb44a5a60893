// Package execute carries out one started attempt and says how it ended. It cannot reach the database: what it is
// told stands in an [Attempt], what it learned in a job.Result.
//
// There is one [Executor] per kind of job: [Shell] runs `bash -c`, [HTTP] sends a request, [Handlers] calls Go functions
// of the program that embeds the node, [Noop] does nothing and is there to measure everything around it. [Kinds] hands
// each attempt to the right one. [Executing] is the set of what is under way.
//
// # A command's life
//
//	Execute ──▶ registered ──fork──▶ running ──bash exits──▶ emptying ──group empty──▶ draining ──▶ job.Result
//	             a signal waits       │  timeout, ctx or        │ PipeWait, then         │ EOF, or
//	             for the fork         │  KillAll: TERM, KILL    │ TERM, then KILL        │ PipeWait
//
// A command is its process group, not only bash. The caller ends the run when Execute returns, so whatever
// still lived then would live beside the job's next run. Hence what bash leaves behind in the group gets PipeWait to
// end by itself (`cmd > >(tee log)` needs a moment), then SIGTERM, and SIGKILL after the grace. cron would leave it
// alone; a job that wants to leave a daemon starts it outside the group (`setsid server >/dev/null 2>&1 &`, or better
// systemd-run) and one that wants its background work finished says `wait`.
//
// What a job says of how its command is run becomes a plan (plan.go) before the fork: as whom (account.go), with which
// limits of each process (rlimit.go) and of all of them (cgroup.go). What cannot be had on this node is a reason not to
// start: never less than was asked for. A command with a cgroup of its own has nothing left when its group is empty and
// what had left the group is killed; it cannot leave a daemon.
//
// # A request's life
//
//	Execute ──▶ filled in, signed ──▶ connecting ──the guard lets it, it may begin──▶ sent ──status──▶ reading ──▶ job.Result
//	             what is wrong: Failed    │ timeout, ctx: nothing was sent               │ timeout, ctx: the connection is closed
//
// What was sent cannot be taken back, and whether a server whose connection breaks stops its work is up to it. It gets
// an Idempotency-Key, and no request is repeated behind the job's back. A redirect is followed only while the session
// holds. What may be called is decided by the address that a name was resolved to, at each connection (http_guard.go).
//
// # Invariants
//
//   - Execute returns only when the process group is empty; zombies that nobody collects do not count. A process that
//     left the group by setsid is seen here only if the command has a cgroup of its own: finding it by the
//     GOCRONTAB_SEAT in its environment is the guard's work.
//   - A group is signalled by number only while its number cannot belong to anybody else (group.go).
//   - No more than [Config].Keep bytes of output are held per command, however much it writes.
//   - A command inherits nothing it was not given: a short list of variables, the null device, one pipe.
//   - KillAll needs no lock that is held over anything that can hang: neither over a fork (an exec from a dead network
//     disk takes as long as it likes) nor over a wait.
//
// # What each failure does
//
//   - Bash is missing, the command is too long, the directory is gone, no process or descriptor is left: Failed, and
//     the reason says which; nothing was started.
//   - A process cannot be killed (stuck in the kernel, or it belongs to another user): Execute waits for it, because
//     the command is alive. The lease and the guard, not this package, decide how long that may last.
//   - A process outside the group keeps the output open: after PipeWait our end is closed, the outcome stays bash's,
//     and the reason says so.
//   - Another part of the program collected bash's exit status: Failed, and the reason says so.
//   - A handler panics or calls runtime.Goexit: Failed; the stack ends the output. A handler that ignores its context
//     is waited for: a goroutine cannot be killed.
//   - The node dies: its commands would go on. That is why there is a [Guard], which is told of each before it begins.
package execute
