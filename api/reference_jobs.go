package api

import (
	"net/http"

	"go-crontab/api/view"
	"go-crontab/job"
)

var (
	jobNameParam   = textParam{declared{"name", "Only jobs whose name contains this.", "backup"}, job.MaxName}
	jobStatusParam = wordParam{declared{"status", "Only jobs with this status.", "paused"},
		[]string{string(job.Active), string(job.Paused), string(job.Finished), string(job.Broken)}}
	ownerParam      = textParam{declared{"owner", "Only jobs of this owner.", "team-data@example.com"}, job.MaxText}
	labelIs         = labelParam{declared{"label", "Only jobs that have this label with this value.", "team=data"}}
	inGroupParam    = textParam{declared{"group", "Only jobs of this group.", "warehouse"}, job.MaxName}
	byCalendarParam = textParam{declared{"calendar", "Only jobs that use this calendar.", "china"}, job.MaxName}
	// see jobFilter
	jobFilterParams = []parameter{
		ofAppParam, jobNameParam, jobStatusParam, ownerParam, inGroupParam, byCalendarParam, labelIs,
	}
	dueCount = numberParam{declared{"n", "The number of due times.", "5"}, maxDue, defaultDue}
	dueAfter = instantParam{
		declared: declared{"from", "Only due times after this time. Without it, after now.", "2027-03-27T00:00:00Z"},
	}
	forceParam = wordParam{
		declared{"force", "Delete the job even if other jobs follow it. They then wait for a job of its name.", "true"},
		[]string{"true", "false"},
	}
	explainAt = instantParam{declared{"at", "The instant in question.", "2027-01-31T03:00:00Z"}, true}
)

// newJobBody describes a new job for the reference; newJob reads it.
type newJobBody struct {
	job.Spec
	Paused bool `json:"paused,omitempty"`
}

// previewBody describes the body for Server.preview.
type previewBody struct {
	Schedule  string       `json:"schedule,omitempty"`
	Schedules []string     `json:"schedules,omitempty"`
	Every     job.Duration `json:"every,omitempty"`
	At        string       `json:"at,omitempty" format:"date-time"`
	Delay     job.Duration `json:"delay,omitempty"`
	After     *job.After   `json:"after,omitempty"`
	Manual    bool         `json:"manual,omitempty"`
	Timezone  string       `json:"timezone,omitempty"`
	Start     string       `json:"start,omitempty" format:"date-time"`
	End       string       `json:"end,omitempty" format:"date-time"`
	MaxFires  int64        `json:"max_fires,omitempty"`
	Jitter    job.Duration `json:"jitter,omitempty"`
	Calendars []string     `json:"calendars,omitempty"`
	OnClosed  job.OnClosed `json:"on_closed,omitempty"`
	Weeks     *job.Weeks   `json:"weeks,omitempty"`
	App       string       `json:"app,omitempty" doc:"As in a job. App and name determine the job's part of the jitter."`
	Name      string       `json:"name,omitempty"`
	Handler   string       `json:"handler,omitempty" doc:"As in a job, to warn if no node has it."`
	Selector  string       `json:"selector,omitempty" doc:"As in a job, to warn if no node matches."`
	From      string       `json:"from,omitempty" format:"date-time" doc:"Only due times after this time. Without it, after now."`
	N         int          `json:"n,omitempty" doc:"How many due times. Without it, 10."`
}

// nothingBody is the empty body.
type nothingBody struct{}

// paramsBody may give values of parameters.
type paramsBody struct {
	Params map[string]job.Value `json:"params,omitempty" doc:"Values of the job's parameters. The others have their defaults."`
}

// reasonBody may give the reason of a change.
type reasonBody struct {
	Reason string `json:"reason,omitempty" doc:"The reason, in one line. It is shown with the object and in the audit."`
}

// pauseBody may give the reason of a pause, and its end.
type pauseBody struct {
	Reason string `json:"reason,omitempty" doc:"The reason, in one line. It is shown with the pause and in the audit."`
	Until  string `json:"until,omitempty" doc:"When the pause ends by itself: a time, or a duration such as '2h'. Without it, it lasts until somebody resumes."`
}

var (
	emptyBody     = &requestBody{of: of[nothingBody](), optional: true, about: "None, or an empty object."}
	mayGiveParams = &requestBody{
		of: of[paramsBody](), optional: true, about: "None, or values of parameters.",
		example: `{"params": {"day": "2026-11-01"}}`,
	}
	mayGiveReason = &requestBody{
		of: of[reasonBody](), optional: true, about: "None, or the reason.", example: `{"reason": "new disks"}`,
	}
	mayLimitPause = &requestBody{
		of: of[pauseBody](), optional: true, about: "None, or the reason and the end.",
		example: `{"reason": "the warehouse moves", "until": "2h"}`,
	}
	replacementJob = &requestBody{of: of[view.Job](),
		about: "The whole definition. An answer of GET can be edited and sent back: fields that only the server sets are " +
			"ignored.",
		example: `{"name": "backup", "schedule": "0 4 * * *", "timezone": "Europe/Berlin", "command": "pg_dump shop > /backup/shop.sql"}`}
	changedJob = []reply{{status: http.StatusOK, about: "The current job.", of: of[view.Job]()}}
)

var (
	createJobDoc = operation{
		id: "createJob", tag: tagJobs, once: true, summary: "Add a job",
		about: "A job needs a name, exactly one of `schedule`, `schedules`, `every`, `at`, `delay`, `after` or `manual`, and " +
			"exactly one of " +
			"`command`, `http` or `handler`. " +
			"It is planned at once, so a due time a moment later is not missed. An `at` that is further in the past " +
			"than the job may start late " +
			"(`misfire.max_age`, an hour by default) is refused: give the current time to run the job now.",
		body: &requestBody{of: of[newJobBody](), about: "The job.",
			example: `{"name": "backup", "schedule": "0 3 * * *", "timezone": "Europe/Berlin", "command": "pg_dump shop > /backup/shop.sql", "timeout": "30m"}`},
		replies: []reply{
			{status: http.StatusCreated, about: "The job.", of: of[view.Job](), headers: []string{"Location"}},
		},
		changes:  true,
		problems: []kind{exists, unreadable, appLimit},
	}
	listJobsDoc = operation{
		id: "listJobs", tag: tagJobs, summary: "List jobs",
		about: "The jobs that match all parameters, in the order of their creation. With `name` they come " +
			"in the order of their names from the matching part on, unless the token is limited to apps. " +
			"If several parameters match many jobs each but few together, a page may have fewer items than it " +
			"could, or none, and still a `next`.",
		query:   listJobsParams,
		replies: found[view.Page[*view.Job]]("A page of jobs."),
	}
	getJobDoc = operation{
		id: "getJob", tag: tagJobs, cached: true, summary: "Show a job",
		about:   "Its definition with all defaults, and its state.",
		replies: found[*view.Job]("The job."), problems: []kind{notFound},
	}
	putJobDoc = operation{
		id: "replaceJob", tag: tagJobs, matched: true, summary: "Replace the definition of a job",
		about: "Fields that are left out get their defaults, except for `paused`, which stays as it is, and the phase " +
			"of an " +
			"unchanged `every`. " +
			"Sending the same body again changes nothing. A new `at` is refused if it is further in the past than the job " +
			"may start late. " +
			"The answer comes once nothing starts under the old definition any more.",
		body: replacementJob, replies: changedJob, changes: true, problems: []kind{
			notFound, exists, changed, unreadable, appLimit,
		},
	}
	patchJobDoc = operation{
		id: "changeJob", tag: tagJobs, matched: true, summary: "Change some fields of a job",
		about: "The body is a JSON merge patch (RFC 7396): fields that are absent stay, and null removes a field.",
		body: &requestBody{of: of[view.Job](), patch: true, about: "The fields to change.",
			example: `{"timeout": "5m", "description": null}`},
		replies: changedJob, changes: true, problems: []kind{notFound, exists, changed, unreadable, appLimit},
	}
	deleteJobDoc = operation{
		id: "deleteJob", tag: tagJobs, matched: true, summary: "Delete a job",
		about: "Executing runs continue to their end, and the history stays. The answer comes once nothing starts any " +
			"more. A job that others follow is deleted only with `force`.",
		query:   []parameter{forceParam},
		replies: gone, changes: true, problems: []kind{notFound, inUse},
	}
	getJobNamedDoc = operation{
		id: "getJobByName", tag: tagJobs, cached: true, summary: "Show a job by name", about: "Like by its id.",
		replies: found[*view.Job]("The job."), problems: []kind{notFound},
	}
	putJobNamedDoc = operation{
		id: "putJobByName", tag: tagJobs, matched: true, unless: true, summary: "Add or replace a job by name",
		about: "Creates the job if no job has this name, and replaces its definition otherwise. Sending the same body " +
			"again changes nothing.",
		body: replacementJob,
		replies: []reply{
			{status: http.StatusOK, about: "The current job.", of: of[view.Job]()},
			{
				status: http.StatusCreated, about: "The new job.", of: of[view.Job](),
				headers: []string{"Location"},
			},
		},
		changes: true, problems: []kind{exists, changed, unreadable, appLimit},
	}
	pauseJobDoc = operation{
		id: "pauseJob", tag: tagJobs, once: true, matched: true, summary: "Pause a job",
		about: "A paused job has no due times. The answer comes once the job starts nothing any more; executing runs " +
			"continue to " +
			"their end.",
		body: mayLimitPause, replies: changedJob, changes: true, problems: []kind{notFound},
	}
	resumeJobDoc = operation{
		id: "resumeJob", tag: tagJobs, once: true, matched: true, summary: "Resume a job",
		about: "Due times during the pause are misfires: the job's misfire policy decides which of them are started late.",
		body:  emptyBody, replies: changedJob, changes: true, problems: []kind{notFound, unreadable},
	}
	runJobDoc = operation{
		id: "runJob", tag: tagJobs, summary: "Run a job now, once",
		about: "In addition to its due times, and even if it is paused. Its overlap policy applies.",
		keyed: true, body: mayGiveParams, changes: true, problems: []kind{notFound, keyReused, unreadable, appLimit},
		replies: []reply{
			{status: http.StatusAccepted, about: "The request. Its run begins in a moment.", of: of[view.Requested]()},
		},
	}
	nextDueDoc = operation{
		id: "listDueTimes", tag: tagJobs, summary: "List the next due times of a job",
		about:    "The due times of its definition, whether or not it is paused.",
		query:    []parameter{dueCount, dueAfter},
		replies:  found[view.Page[view.DueTime]]("The due times, the earliest first."),
		problems: []kind{notFound, unreadable},
	}
	explainDoc = operation{
		id: "explain", tag: tagJobs, summary: "Explain why a job did or did not run",
		about: "What happened at a time, and why, in words and in data. Deleted jobs are explained as well.",
		query: []parameter{explainAt}, replies: found[view.Explanation]("The explanation."),
		problems: []kind{notFound, unreadable},
	}
	historyDoc = operation{
		id: "listHistory", tag: tagJobs, summary: "List the ended runs of a job",
		about:   "The latest due time comes first. The history of deleted jobs stays.",
		query:   []parameter{endedParam, triggerParam, dueFromParam, dueBeforeParam, limitParam, pageParam},
		replies: found[view.Page[*view.Run]]("A page of runs."), problems: []kind{notFound},
	}
	previewDoc = operation{
		id: "preview", tag: tagJobs, spoken: true, summary: "Preview a schedule",
		about: "The due times of a schedule before anything is saved, with the gaps and repeats of " +
			"daylight saving marked.",
		body: &requestBody{of: of[previewBody](),
			about:   "The fields that determine due times: `schedule`, `schedules`, `every` or `at`.",
			example: `{"schedule": "30 2 * * *", "timezone": "Europe/Berlin", "from": "2027-03-27T00:00:00Z", "n": 3}`},
		replies: []reply{{status: http.StatusOK, about: "The due times.", of: of[view.Preview](),
			headers: []string{"Vary"}}}, problems: []kind{unreadable},
	}
)

// gone is the reply to a deletion.
var gone = []reply{{status: http.StatusNoContent, about: "The object is deleted."}}
