// Package read answers what people, alerts, metrics and the doctor ask about runs and jobs, and what several packages ask
// about the audit, figures and chores. The trip uses none of it.
//
// Nothing here takes a lock, and each page of a list reads a bounded number of rows, however many runs have ended. Lists go
// on behind a place, not behind a number of rows, so what is inserted meanwhile moves nothing.
//
// The indexes, and what they list:
//
//	run.live (owner, due_now, hash)   ended runs of all apps, in the order in which they were to begin; executing runs
//	run.by_app (app_id, due)          runs of an app
//	run.attempt (job_id, due, …)      runs of a job
//	notable (outcome, due, run_id)    runs that did not succeed, of all apps, of an app, of a job
//	ending (id)                       what has ended since, in the order of ends: one row a transaction, see trip/note.go
//	job.listed (app_id, living)       jobs of an app
//	job_term, job_part                jobs by owner, label, group, calendar, and by a part of the name
package read
