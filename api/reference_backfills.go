package api

import (
	"net/http"

	"go-crontab/api/view"
	"go-crontab/job"
)

// backfillBody describes the body for Server.startBackfill.
type backfillBody struct {
	From     string `json:"from" format:"date-time" doc:"The beginning of the range, inclusive."`
	To       string `json:"to,omitempty" format:"date-time" doc:"The end of the range, inclusive. It must be in the past. Without it, now."`
	Parallel int    `json:"parallel,omitempty" doc:"How many due times run at the same time. Without it, one."`
	Missing  bool   `json:"missing,omitempty" doc:"Whether to leave out due times that have already succeeded."`

	Params map[string]job.Value `json:"params,omitempty" doc:"Values of the job's parameters, for each run."`
}

var (
	startBackfillDoc = operation{
		id: "startBackfill", tag: tagBackfills, summary: "Start a backfill",
		about: "Starts the due times of a range in the past, whether or not they were started before. " +
			"Unless the job's overlap policy is `allow`, they take turns with the due times of its schedule.",
		keyed: true, changes: true, problems: []kind{notFound, keyReused, unreadable, appLimit},
		body: &requestBody{of: of[backfillBody](), about: "The range.",
			example: `{"from": "2026-01-01T00:00:00Z", "to": "2026-01-31T23:59:59Z", "parallel": 2, "missing": true}`},
		replies: []reply{
			{
				status: http.StatusAccepted, about: "The backfill.", of: of[view.Backfill](),
				headers: []string{"Location"},
			},
		},
	}
	listBackfillsDoc = operation{
		id: "listBackfills", tag: tagBackfills, summary: "List backfills", about: "The latest first.",
		query:   []parameter{ofJobParam, limitParam, pageParam},
		replies: found[view.Page[view.Backfill]]("A page of backfills."),
	}
	getBackfillDoc = operation{
		id: "getBackfill", tag: tagBackfills, summary: "Show a backfill",
		about:   "Its progress, and the outcomes of its due times.",
		replies: found[view.Backfill]("The backfill."), problems: []kind{notFound},
	}
	cancelBackfillDoc = operation{
		id: "cancelBackfill", tag: tagBackfills, once: true, summary: "Cancel a backfill",
		about: "Due times that have not been started are dropped; executing runs continue to their end.",
		body:  emptyBody, changes: true, problems: []kind{notFound},
		replies: []reply{{status: http.StatusOK, about: "The current backfill.", of: of[view.Backfill]()}},
	}
)
