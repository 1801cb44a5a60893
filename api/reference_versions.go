package api

import "go-crontab/api/view"

var (
	listVersionsDoc = operation{
		id: "listVersions", tag: tagJobs, summary: "List the versions of a job",
		about: "The latest first. Each change of the definition is kept. The job's version also grows with pauses and the " +
			"like, so the numbers have gaps. The versions of deleted jobs stay.",
		query:    []parameter{limitParam, pageParam},
		replies:  found[view.Page[view.VersionItem]]("A page of versions."),
		problems: []kind{notFound},
	}
	getVersionDoc = operation{
		id: "getVersion", tag: tagJobs, summary: "Show a version of a job",
		about:   "The definition that was in force at that version.",
		replies: found[view.Version]("The definition."), problems: []kind{notFound},
	}
	diffVersionsDoc = operation{
		id: "diffVersions", tag: tagJobs, summary: "Compare two versions of a job",
		about:   "Field by field, with the value in each version.",
		replies: found[view.Diff]("The differences."), problems: []kind{notFound, unreadable},
	}
	rollbackDoc = operation{
		id: "rollbackJob", tag: tagJobs, once: true, matched: true,
		summary: "Roll back a job to an earlier version",
		about: "This is a change like any other, with its own version, and can be rolled back too. Whether the job is " +
			"paused stays as it is.",
		body:    &requestBody{of: of[rollbackBody](), about: "The version.", example: `{"version": 3}`},
		replies: changedJob, changes: true, problems: []kind{notFound, exists, changed, unreadable, appLimit},
	}
)
