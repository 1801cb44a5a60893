// Package edit makes people's changes: it creates, changes, pauses, resumes and deletes jobs, asks for runs and backfills, and
// kills runs.
//
// A change of jobs has four steps, however many jobs it is about:
//
//	see.go      reads the jobs and computes their due times; nothing is locked
//	judge.go    decides about each job, by what was seen and by its row, which is locked by now
//	write.go    writes the decisions, a few statements for all jobs together
//	editor.go   runs these in one transaction with the lines of the audit, and answers
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
