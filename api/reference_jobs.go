package api

import "go-crontab/job"

var (
	jobNameParam  = textParam{declared{"name", "Only jobs whose name contains this.", "backup"}, job.MaxName}
	jobStateParam = wordParam{declared{"state", "Only jobs whose status is this.", "paused"},
		[]string{string(job.Active), string(job.Paused), string(job.Finished), string(job.Broken)}}
	ownerParam = textParam{declared{"owner", "Only jobs of this owner.", "team-data@example.com"}, job.MaxText}
	labelIs    = labelParam{declared{"label", "Only jobs that have this label with this value.", "team=data"}}
	dueCount   = numberParam{declared{"n", "How many due times.", "5"}, maxDue, defaultDue}
	dueAfter   = instantParam{declared: declared{"from", "Only due times after this instant. Without it, after now.", "2027-03-27T00:00:00Z"}}
	explainAt  = instantParam{declared{"at", "The instant in question.", "2027-01-31T03:00:00Z"}, true}
)

var (
	createJobDoc   = operation{id: "createJob"}
	listJobsDoc    = operation{id: "listJobs", query: []parameter{ofAppParam, jobNameParam, jobStateParam, ownerParam, labelIs, limitParam, pageParam}}
	getJobDoc      = operation{id: "getJob"}
	putJobDoc      = operation{id: "replaceJob"}
	patchJobDoc    = operation{id: "changeJob"}
	deleteJobDoc   = operation{id: "deleteJob"}
	getJobNamedDoc = operation{id: "getJobByName"}
	putJobNamedDoc = operation{id: "putJobByName"}
	pauseJobDoc    = operation{id: "pauseJob"}
	resumeJobDoc   = operation{id: "resumeJob"}
	runJobDoc      = operation{id: "runJob"}
	nextDueDoc     = operation{id: "listDueTimes", query: []parameter{dueCount, dueAfter}}
	explainDoc     = operation{id: "explain", query: []parameter{explainAt}}
	historyDoc     = operation{id: "listHistory", query: []parameter{endedParam, dueFromParam, dueBeforeParam, limitParam, pageParam}}
	previewDoc     = operation{id: "preview"}
)
