// Package execute carries out one started attempt and reports how it ended. It cannot reach the database: its input is
// an [Attempt], its answer a job.Result.
//
// Each kind of job has an [Executor]: [Shell] runs `bash -c`, [HTTP] sends a request, [Handlers] calls Go functions of
// the program that embeds the node, and [Noop] does nothing, for benchmarks of everything else. [Kinds] picks the
// executor of an attempt. [Executing] is the set of attempts under way.
//
// # A command's life
//
//	Execute ──▶ registered ──fork──▶ running ──bash exits──▶ emptying ──group empty──▶ draining ──▶ job.Result
//	             a signal waits       │  timeout, ctx or        │ PipeWait, then         │ EOF, or
//	             for the fork         │  KillAll: TERM, KILL    │ TERM, then KILL        │ PipeWait
//
// A command is its whole process group, not only bash. The caller ends the run when Execute
// returns, so a surviving process would overlap with the job's next run. So the processes that
// bash leaves in the group get PipeWait to end by themselves (`cmd > >(tee log)` needs a moment),
// then SIGTERM, and SIGKILL after the grace. cron would let them live. A job that starts a daemon
// must start it outside the group (`setsid server >/dev/null 2>&1 &`, or better systemd-run). A
// job that needs its background work finished calls `wait`.
//
// Before the fork, a job's options become a plan (plan.go): the user (account.go), the limits of each process
// (rlimit.go) and the limits of all processes together (cgroup.go). If this node cannot provide an option, the command
// does not start: it never runs with less than its job asks for. A command with its own cgroup cannot leave a daemon:
// once its group is empty, every other process in the cgroup is killed.
//
// # A request's life
//
//	Execute ──▶ filled in, signed ──▶ connecting ──address and window ok──▶ sent ──status──▶ reading ──▶ job.Result
//	             an error: Failed         │ timeout, ctx: nothing was sent   │ timeout, ctx: close the connection
//
// A sent request cannot be taken back. When the connection breaks, the server decides whether it
// stops its work. Each request has an Idempotency-Key. The node never repeats a request that the
// server may have seen. Redirects are followed only while the session is fresh. Each connection's
// resolved address must be allowed (http_guard.go).
//
// # Invariants
//
//   - Execute returns only when the process group is empty, apart from zombies that their parents do not collect. A
//     process that left the group by setsid is visible here only if the command has its own cgroup. Otherwise the guard
//     finds it, by the GOCRONTAB_SEAT in its environment.
//   - A group is signalled by number only while no other group can have that number (group.go).
//   - At most [Config].Keep bytes of output are held per command, however much it writes, and a bounded number of stamps.
//   - A command inherits only a short list of variables, the null device and one pipe.
//   - KillAll never needs a lock that is held during an operation that can hang: not a fork (an exec from a dead
//     network disk can take forever) and not a wait.
//
// # What each failure does
//
//   - Bash or the directory is missing, the command is too long, or the system has no process or descriptor left:
//     Failed, with the cause as reason; nothing was started.
//   - A process cannot be killed (stuck in the kernel, or another user's): Execute waits for it, because the command is
//     alive. The lease and the guard limit that time, not this package.
//   - A process outside the group keeps the output open: after PipeWait our end is closed. The outcome stays bash's,
//     and the reason mentions it.
//   - Another part of the program collected bash's exit status: Failed, with that as reason.
//   - A handler panics or calls runtime.Goexit: Failed; its stack is appended to the output. A handler that ignores its
//     context blocks Execute: a goroutine cannot be killed.
//   - The node dies: its commands would go on. Therefore a [Guard] is told of each command before it begins.
package execute
