package api

import "go-crontab/api/view"

import "net/http"

var (
	listLimitsDoc = operation{
		id: "listLimits", tag: tagCluster, summary: "List the apps that have limits",
		about:   "With what each of them uses now, by the names of the apps.",
		replies: found[view.Page[view.AppLimits]]("The limits, all of them."),
	}
	getLimitsDoc = operation{
		id: "getLimits", tag: tagCluster, summary: "Show the limits of an app",
		about:   "With what it uses now. An app without limits shows none.",
		replies: found[view.AppLimits]("The limits."), problems: []kind{notFound},
	}
	putLimitsDoc = operation{
		id: "putLimits", tag: tagCluster, unless: true, summary: "Limit what an app may take",
		about: "The limits take the place of those before. Only an admin of the whole cluster may do that, so that " +
			"no app lifts its own limits. " +
			"An app keeps what it has beyond a lower limit. All nodes go by new limits within three seconds. What " +
			"happens at a limit is in `docs/limits.md`.",
		body: &requestBody{
			of: of[view.AppLimits](), about: "The limits, at least one.",
			example: `{"jobs": 200, "runs_per_minute": 600, "waiting": 1000, "output": "2GiB"}`,
		},
		replies: []reply{{status: http.StatusOK, about: "The limits as they are now.", of: of[view.AppLimits]()}},
		changes: true,
	}
	deleteLimitsDoc = operation{
		id: "deleteLimits", tag: tagCluster, summary: "Take all limits from an app",
		about:   "Only an admin of the whole cluster may do that.",
		replies: gone, changes: true,
	}
)
