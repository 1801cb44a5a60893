// Package edit makes the changes that people ask for. It creates, changes, pauses, resumes and
// deletes jobs: one, many at once, or all jobs of a set of files. It adds runs and backfills, and
// kills runs. It also changes the things that jobs share: calendars, groups, pauses of apps,
// handlers, nodes, limits and retention rules, and with files also alerts.
//
// A change of jobs has four steps, for any number of jobs:
//
//	see.go      reads the jobs and computes their due times, without locks
//	judge.go    decides about each job, from the first reading and the row, which is locked by then
//	write.go    writes the decisions, in a few statements for all jobs together
//	editor.go   runs these steps in one transaction, adds the audit lines, and answers
//
// Everything that a job names must exist. refs.go checks this in the transaction that writes the
// job, and limits.go counts against the limits of apps in the same transaction.
//
// Applying files uses the same steps (apply.go). First it compares the files with the database and
// lists the changes of jobs. The transaction then writes the folder, pauses, calendars and groups
// before the jobs, and alerts and retention after them.
//
// A change of jobs is answered once the spawn windows of their executing runs have passed. A stop
// (stops.go) concerns many jobs, and nodes read stops only periodically. So a change of a stop is
// answered once no node can start a run from an older reading of the stops.
//
// A decision never computes a due time. If a row has changed since it was first read, the whole
// change begins again, a few times at most.
//
// An edit takes back runs that have not begun: it deletes the future runs of the schedule, and
// claims insert them again from the new cursor, under the new definition. Runs that are already
// due, retries and requested runs stay. They are judged when they start.
//
// If we die before the commit, the change has no effect. If we die after it, the change is complete
// but unanswered, and claims go on from the new cursors.
package edit
