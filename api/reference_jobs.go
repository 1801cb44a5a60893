package api

import (
	"net/http"
	"slices"

	"go-crontab/job"
)

var (
	jobNameParam  = textParam{declared{"name", "Only jobs whose name contains this.", "backup"}, job.MaxName}
	jobStateParam = wordParam{declared{"state", "Only jobs whose status is this.", "paused"},
		[]string{string(job.Active), string(job.Paused), string(job.Finished), string(job.Broken)}}
	ownerParam      = textParam{declared{"owner", "Only jobs of this owner.", "team-data@example.com"}, job.MaxText}
	labelIs         = labelParam{declared{"label", "Only jobs that have this label with this value.", "team=data"}}
	inGroupParam    = textParam{declared{"group", "Only jobs of this group.", "warehouse"}, job.MaxName}
	byCalendarParam = textParam{declared{"calendar", "Only jobs that name this calendar.", "china"}, job.MaxName}
	// see jobFilter
	jobFilterParams = []parameter{
		ofAppParam, jobNameParam, jobStateParam, ownerParam, inGroupParam, byCalendarParam, labelIs,
	}
	dueCount = numberParam{declared{"n", "How many due times.", "5"}, maxDue, defaultDue}
	dueAfter = instantParam{
		declared: declared{"from", "Only due times after this instant. Without it, after now.", "2027-03-27T00:00:00Z"},
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
	Timezone  string       `json:"timezone,omitempty"`
	Start     string       `json:"start,omitempty" format:"date-time"`
	End       string       `json:"end,omitempty" format:"date-time"`
	MaxFires  int64        `json:"max_fires,omitempty"`
	Jitter    job.Duration `json:"jitter,omitempty"`
	Calendars []string     `json:"calendars,omitempty"`
	App       string       `json:"app,omitempty" doc:"As in a job. App and name determine the job's part of the jitter."`
	Name      string       `json:"name,omitempty"`
	Handler   string       `json:"handler,omitempty" doc:"As in a job, to warn if no node has it."`
	Selector  string       `json:"selector,omitempty" doc:"As in a job, to warn if no node matches."`
	From      string       `json:"from,omitempty" format:"date-time" doc:"Only due times after this instant. Without it, after now."`
	N         int          `json:"n,omitempty" doc:"How many due times. Without it, 10."`
}

// nothingBody is the empty body.
type nothingBody struct{}

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
	mayGiveReason = &requestBody{
		of: of[reasonBody](), optional: true, about: "None, or why.", example: `{"reason": "new disks"}`,
	}
	mayLimitPause = &requestBody{
		of: of[pauseBody](), optional: true, about: "None, or why and until when.",
		example: `{"reason": "the warehouse moves", "until": "2h"}`,
	}
	replacementJob = &requestBody{of: of[jobView](),
		about: "The whole definition. What GET answered can be edited and sent back: what only the server sets is " +
			"ignored.",
		example: `{"name": "backup", "schedule": "0 4 * * *", "timezone": "Europe/Berlin", "command": "pg_dump shop > /backup/shop.sql"}`}
	changedJob = []reply{{status: http.StatusOK, about: "The job as it is now.", of: of[jobView]()}}
)

var (
	createJobDoc = operation{
		id: "createJob", tag: tagJobs, once: true, summary: "Add a job",
		about: "A job needs a name, one way to say when (`schedule`, `schedules`, `every` or `at`) and one way to " +
			"say what (`command`, `http` or `handler`). " +
			"It is planned at once: one that is due in a moment is not missed. An `at` that is further in the past " +
			"than the job may start late " +
			"(`misfire.max_age`, an hour by default) is refused: give the present instant for one that is to run now.",
		body: &requestBody{of: of[newJobBody](), about: "The job.",
			example: `{"name": "backup", "schedule": "0 3 * * *", "timezone": "Europe/Berlin", "command": "pg_dump shop > /backup/shop.sql", "timeout": "30m"}`},
		replies: []reply{
			{status: http.StatusCreated, about: "The job.", of: of[jobView](), headers: []string{"Location"}},
		},
		changes:  true,
		problems: []kind{exists, unreadable, appLimit},
	}
	listJobsDoc = operation{
		id: "listJobs", tag: tagJobs, summary: "List jobs",
		about: "The jobs that match all parameters, in the order of their creation; those whose names contain " +
			"something, in the order of the names from there on, but for a token that is limited to apps. " +
			"Where several parameters each match many jobs and few together, a page may have fewer items than it " +
			"could, or none, and yet a `next`.",
		query:   slices.Concat(jobFilterParams, []parameter{limitParam, pageParam}),
		replies: found[page[*jobView]]("A page of jobs."),
	}
	getJobDoc = operation{
		id: "getJob", tag: tagJobs, cached: true, summary: "Show a job",
		about:   "Its definition with all defaults, and what the cluster knows about it.",
		replies: found[*jobView]("The job."), problems: []kind{notFound},
	}
	putJobDoc = operation{
		id: "replaceJob", tag: tagJobs, matched: true, summary: "Replace the definition of a job",
		about: "What is left out gets its default, but for `paused`, which stays as it is, and the phase of an " +
			"unchanged `every`. " +
			"The same body twice changes nothing. Another `at` is refused if it is further in the past than the job " +
			"may start late. " +
			"Answered once nothing starts under the old definition any more.",
		body: replacementJob, replies: changedJob, changes: true, problems: []kind{
			notFound, exists, changed, unreadable, appLimit,
		},
	}
	patchJobDoc = operation{
		id: "changeJob", tag: tagJobs, matched: true, summary: "Change some fields of a job",
		about: "The body is a JSON merge patch (RFC 7396): what it does not name stays, and null takes a field away.",
		body: &requestBody{of: of[jobView](), patch: true, about: "What is to be another.",
			example: `{"timeout": "5m", "description": null}`},
		replies: changedJob, changes: true, problems: []kind{notFound, exists, changed, unreadable, appLimit},
	}
	deleteJobDoc = operation{
		id: "deleteJob", tag: tagJobs, matched: true, summary: "Delete a job",
		about:   "What executes runs to its end, and history stays. Answered once nothing starts any more.",
		replies: gone, changes: true, problems: []kind{notFound},
	}
	getJobNamedDoc = operation{
		id: "getJobByName", tag: tagJobs, cached: true, summary: "Show the job of a name", about: "As by its id.",
		replies: found[*jobView]("The job."), problems: []kind{notFound},
	}
	putJobNamedDoc = operation{
		id: "putJobByName", tag: tagJobs, matched: true, unless: true, summary: "Add or replace the job of a name",
		about: "Makes the job if there is none of this name, and replaces its definition otherwise. The same body " +
			"twice changes nothing.",
		body: replacementJob,
		replies: []reply{
			{status: http.StatusOK, about: "The job as it is now.", of: of[jobView]()},
			{
				status: http.StatusCreated, about: "The job, which is new.", of: of[jobView](),
				headers: []string{"Location"},
			},
		},
		changes: true, problems: []kind{exists, changed, unreadable, appLimit},
	}
	pauseJobDoc = operation{
		id: "pauseJob", tag: tagJobs, once: true, matched: true, summary: "Pause a job",
		about: "A paused job has no due times. Answered once nothing of it starts any more; what executes runs to " +
			"its end.",
		body: mayLimitPause, replies: changedJob, changes: true, problems: []kind{notFound},
	}
	resumeJobDoc = operation{
		id: "resumeJob", tag: tagJobs, once: true, matched: true, summary: "Resume a job",
		about: "What was due in the pause is a misfire: its policy decides what is made up for.",
		body:  emptyBody, replies: changedJob, changes: true, problems: []kind{notFound, unreadable},
	}
	runJobDoc = operation{
		id: "runJob", tag: tagJobs, summary: "Run a job now, once",
		about: "Besides its due times, and also when it is paused. Its overlap policy is obeyed.",
		keyed: true, body: emptyBody, changes: true, problems: []kind{notFound, keyReused, unreadable, appLimit},
		replies: []reply{
			{status: http.StatusAccepted, about: "The request: its run begins in a moment.", of: of[requestedView]()},
		},
	}
	nextDueDoc = operation{
		id: "listDueTimes", tag: tagJobs, summary: "List the next due times of a job",
		about: "What its definition comes to, whether or not it is paused.",
		query: []parameter{dueCount, dueAfter}, replies: found[page[dueView]]("The due times, the earliest first."),
		problems: []kind{notFound, unreadable},
	}
	explainDoc = operation{
		id: "explain", tag: tagJobs, summary: "Explain why a job did or did not run",
		about: "What became of an instant, and why, in words and in data. Deleted jobs are explained as well.",
		query: []parameter{explainAt}, replies: found[explanation]("The explanation."),
		problems: []kind{notFound, unreadable},
	}
	historyDoc = operation{
		id: "listHistory", tag: tagJobs, summary: "List the ended runs of a job",
		about:   "The latest due first. That of deleted jobs stays.",
		query:   []parameter{endedParam, triggerParam, dueFromParam, dueBeforeParam, limitParam, pageParam},
		replies: found[page[*runView]]("A page of runs."), problems: []kind{notFound},
	}
	previewDoc = operation{
		id: "preview", tag: tagJobs, spoken: true, summary: "Preview a schedule",
		about: "What a schedule comes to, before anything is saved: when it is due, with the gaps and repeats of " +
			"daylight saving marked.",
		body: &requestBody{of: of[previewBody](),
			about:   "What says when a job is due: `schedule`, `schedules`, `every` or `at`.",
			example: `{"schedule": "30 2 * * *", "timezone": "Europe/Berlin", "from": "2027-03-27T00:00:00Z", "n": 3}`},
		replies: []reply{{status: http.StatusOK, about: "The due times.", of: of[previewView](),
			headers: []string{"Vary"}}}, problems: []kind{unreadable},
	}
)

// gone is the reply to a deletion.
var gone = []reply{{status: http.StatusNoContent, about: "It is deleted."}}
