package api

import (
	"net/http"
	"slices"

	"go-crontab/api/view"
	"go-crontab/job"
)

var (
	statsWindow = spanParam{
		declared{"window", "How far back the window reaches. Without it, 24h.", "24h"}, minWindow, maxWindow,
	}
	statsLimit = numberParam{declared{"limit", "The most jobs that are listed.", "20"}, maxLimit, defaultLimit}
	slotsFrom  = instantParam{declared{"from", "Only due times at or after this time.", "2027-01-31T00:00:00Z"}, true}
	slotsTo    = instantParam{
		declared: declared{
			"to", "Only due times before this time, at most 31 days after `from`. Without it, 24 hours after `from`.",
			"2027-02-01T00:00:00Z",
		},
	}
	slotsMost = numberParam{
		declared{"most", "Jobs with more due times in the range than this get counts per part of the range, as `buckets`.",
			"100"}, maxSlots, defaultSlots,
	}
	slotsParts = numberParam{declared{"parts", "Into how many parts the range is divided for `buckets`.", "96"}, maxParts,
		defaultParts}
	slotsJobs = numberParam{declared{"limit", "The most jobs on a page.", "20"}, maxSlotJobs, defaultSlotJobs}

	withParam = wordParam{declared{"with", "What each job also has: its last runs.", "last_runs"}, []string{withLastRuns}}
	jobIDs    = idsParam{
		declared{"ids", "Only these jobs: up to 200 ids, separated by commas. Ids of no job are left out. Cannot be " +
			"combined with other filters.", "17,23"}, maxBulk,
	}
)

var (
	jobStatsDoc = operation{
		id: "getJobStats", tag: tagCluster, summary: "Show how jobs fared",
		about: "Runs, failures and durations of each job in a window that ends now, the noisiest job first. Runs count " +
			"by their due time, so runs of a backfill belong to the window of their due times. The work for one " +
			"answer is limited: see `cut`.",
		query: []parameter{statsWindow, ofAppParam, statsLimit}, replies: found[view.JobStats]("The figures."),
	}
	countsDoc = operation{
		id: "getCounts", tag: tagCluster, summary: "Count what needs attention",
		about: "Numbers for the menu of a console: cheap enough to ask every ten seconds. Each node looks for failing jobs " +
			"at most every five seconds, for all who ask.",
		replies: found[view.Counts]("The numbers."),
	}
	slotsDoc = operation{
		id: "listSlots", tag: tagCluster, summary: "Show what became of due times",
		about: "The due times in a range by the definitions in force at the time, and what became of each: also of those " +
			"without any record, which are `hole`. `GET /api/v1/jobs/{id}/explain` explains each. A change of a " +
			"calendar in the range is not followed: the present calendar applies.",
		query:   []parameter{slotsFrom, slotsTo, ofAppParam, ofJobParam, slotsMost, slotsParts, slotsJobs, pageParam},
		replies: found[view.Slots]("A page of jobs."), problems: []kind{notFound},
	}
	rerunDoc = operation{
		id: "rerunRuns", tag: tagRuns, once: true, summary: "Run failed due times again",
		about: "Runs the due times again whose last run matches all parameters, each once, all as one request. Without " +
			"`outcome` these are the runs that failed, timed out or were lost. A due time whose last run succeeded or has " +
			"not ended does not match. Give the runs with `ids`, or else a `from`. The runs have the trigger " +
			"`backfill`: unless the overlap policy of the job is `allow`, they take turns with the due times of its " +
			"schedule, and in a pause they wait for its end. One request starts up to `limit`, the latest first, in one transaction. While the answer has a `next`, " +
			"repeat the request with that as `cursor`. Send an `Idempotency-Key`, a new one with each `cursor`, if you may " +
			"have to repeat a request. Try the request with `dry_run` first.",
		query: rerunParams, body: emptyBody, changes: true,
		replies: []reply{{status: http.StatusOK, about: "The due times.", of: of[*view.Rerun]()}},
	}
	backfillDuesDoc = operation{
		id: "listBackfillDues", tag: tagBackfills, summary: "List the due times of a backfill",
		about:   "In the order in which the backfill starts them, with what became of each.",
		query:   []parameter{backfillState, limitParam, pageParam},
		replies: found[view.Page[view.BackfillDue]]("A page of due times."), problems: []kind{notFound, unreadable},
	}
)

var (
	rerunOutcome = wordParam{
		declared{"outcome", "Only runs with this outcome. Without it, `failed`, `timed_out` and `lost`; " +
			"`unsuccessful` adds `killed`.", "failed"},
		[]string{job.Failed.String(), job.TimedOut.String(), job.Lost.String(), job.Killed.String(), unsuccessful},
	}
	rerunLimit  = numberParam{declared{"limit", "The most due times that one request starts.", "50"}, maxBulk, maxBulk}
	rerunParams = []parameter{
		ofJobParam, ofAppParam, rerunOutcome, onNodeParam, dueFromParam, dueBeforeParam, rerunIDs, dryRunParam, rerunLimit,
		pageParam,
	}
	rerunIDs = idsParam{
		declared{"ids", "Exactly these runs: up to 200 ids, separated by commas. Cannot be combined with a filter.",
			"274877906951"}, maxBulk,
	}
	backfillState = wordParam{
		declared{"state", "Only due times that did not succeed, or only those that are running or waiting.", "failed"},
		[]string{"failed", "running"},
	}
)

// listJobsParams are the parameters of the list of jobs.
var listJobsParams = slices.Concat(jobFilterParams, []parameter{jobIDs, withParam, limitParam, pageParam})
