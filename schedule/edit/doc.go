// Package edit makes people's changes: it creates, changes, pauses, resumes and deletes jobs, one by one, many at once, or as
// files want them; it asks for runs and backfills, and kills runs; and it changes what jobs share: calendars, groups, pauses of apps,
// handlers, nodes, limits and rules of retention.
//
// A change of jobs has four steps, however many jobs it is about:
//
//	see.go      reads the jobs and computes their due times; nothing is locked
//	judge.go    decides about each job, by what was seen and by its row, which is locked by now
//	write.go    writes the decisions, a few statements for all jobs together
//	editor.go   runs these in one transaction with the lines of the audit, and answers
//
// What a job names must exist: refs.go looks, in the transaction that writes the job. Limits of apps are counted there, too
// (limits.go).
//
// Files are applied by the same steps (apply.go). Before them, a look says what differs and makes the list of changes of jobs. The
// transaction writes the folder, pauses, calendars and groups before the jobs, and alerts and retention behind them.
//
// A change of jobs is answered when the spawn windows of their executing runs have passed. A stop (stops.go) is about many jobs and
// is read by nodes now and then, so it is answered when no node can start anything by an older reading.
//
// A decision never computes a due time. If the row is not as it was seen (somebody else was faster), the whole change begins again:
// at most a few times.
//
// An edit takes back what has not begun: it deletes the future runs of the schedule, and the new cursor makes claims bring them
// again, under the new definition. Runs that are due already, retries, and runs that people have asked for stay: their start
// judges them by what it finds then.
//
// If we die before the commit, nothing of a change stands. If we die after it, all of it does: nobody is told so, and claims go
// on from the new cursors.
package edit
