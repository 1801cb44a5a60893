package api

import "go-crontab/api/view"

import "net/http"

var (
	listLimitsDoc = operation{
		id: "listLimits", tag: tagCluster, summary: "List the apps that have limits",
		about:   "With the current use, by app name.",
		replies: found[view.Page[view.AppLimits]]("All limits."),
	}
	getLimitsDoc = operation{
		id: "getLimits", tag: tagCluster, summary: "Show the limits of an app",
		about:   "With its current use. For an app without limits, none are shown.",
		replies: found[view.AppLimits]("The limits."), problems: []kind{notFound},
	}
	putLimitsDoc = operation{
		id: "putLimits", tag: tagCluster, unless: true, summary: "Set the limits of an app",
		about: "They replace the previous limits. Only an admin of the whole cluster can set them, so that " +
			"no app can raise its own limits. " +
			"An app keeps what it already has beyond a lower limit. All nodes apply new limits within three seconds. What " +
			"happens at a limit is in `docs/limits.md`.",
		body: &requestBody{
			of: of[view.AppLimits](), about: "The limits, at least one.",
			example: `{"jobs": 200, "runs_per_minute": 600, "waiting": 1000, "output": "2GiB"}`,
		},
		replies: []reply{{status: http.StatusOK, about: "The current limits.", of: of[view.AppLimits]()}},
		changes: true,
	}
	deleteLimitsDoc = operation{
		id: "deleteLimits", tag: tagCluster, summary: "Remove all limits of an app",
		about:   "Only an admin of the whole cluster can do this.",
		replies: gone, changes: true,
	}
)
