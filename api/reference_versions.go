package api

import "go-crontab/api/view"

var (
	listVersionsDoc = operation{
		id: "listVersions", tag: tagJobs, summary: "List the definitions that a job has had",
		about: "The latest first. Each change of the definition is kept; the job's version grows with pauses and the " +
			"like as well, so there are gaps between the numbers. Those of deleted jobs stay.",
		query:    []parameter{limitParam, pageParam},
		replies:  found[view.Page[view.VersionItem]]("A page of definitions."),
		problems: []kind{notFound},
	}
	getVersionDoc = operation{
		id: "getVersion", tag: tagJobs, summary: "Show a definition that a job had",
		about:   "The one that was in force when the job was at that version.",
		replies: found[view.Version]("The definition."), problems: []kind{notFound},
	}
	diffVersionsDoc = operation{
		id: "diffVersions", tag: tagJobs, summary: "Compare two definitions that a job had",
		about:   "Field by field, each with what it was and what it is then.",
		replies: found[view.Diff]("What is different."), problems: []kind{notFound, unreadable},
	}
	rollbackDoc = operation{
		id: "rollbackJob", tag: tagJobs, once: true, matched: true,
		summary: "Take an earlier definition of a job again",
		about: "A change like any other, with a version of its own: it can be rolled back, too. Whether the job is " +
			"paused stays as it is.",
		body:    &requestBody{of: of[rollbackBody](), about: "To what.", example: `{"version": 3}`},
		replies: changedJob, changes: true, problems: []kind{notFound, exists, changed, unreadable, appLimit},
	}
)
