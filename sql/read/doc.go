// Package read answers the questions of users, alerts, metrics and the doctor about runs and jobs.
// It also holds the reads of the audit, figures and chores that several packages share. The trip of
// a run uses nothing from it.
//
// No function here takes a lock. Each page of a list reads a bounded number of rows, no matter how
// large the history is. A list continues after a place and not after a number of rows, so rows
// inserted in between shift nothing.
//
// The indexes, and the lists that they serve:
//
//	run.live (owner, due_now, hash)   ended runs of all apps by the time they were to begin;
//	                                  executing runs
//	run.by_app (app_id, due)          runs of an app
//	run.attempt (job_id, due, …)      runs of a job
//	notable (outcome, due, run_id)    unsuccessful runs: all, of an app, or of a job
//	ending (id)                       latest ends in order, one row per transaction: trip/note.go
//	job.listed (app_id, living)       jobs of an app
//	job_term, job_part                jobs by owner, label, group, calendar, or part of the name
//
// A subquery about the runs of job j sorts by all columns of its index, even by job_id, which is the
// same in all its rows. Otherwise MySQL 9 reads and sorts all runs of the job.
package read
