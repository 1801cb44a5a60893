package api

import "go-crontab/api/view"

import "net/http"

var keptRule = []reply{{status: http.StatusOK, about: "The current rule.", of: of[view.Retention]()}}

var (
	listRetentionDoc = operation{
		id: "listRetention", tag: tagCluster, summary: "Show retention",
		about: "The rules of the cluster and of apps, and the progress of the removal. Fields that a job leaves out " +
			"come from its app's rule, and then from the cluster's. A field that no rule sets keeps everything.",
		replies: found[view.Retentions]("All rules."),
	}
	putRetentionDoc = operation{
		id: "putRetention", tag: tagCluster, unless: true, summary: "Set the retention of the cluster",
		about: "The rule replaces the previous one. An empty rule keeps everything.",
		body: &requestBody{of: of[view.Retention](), about: "The rule.",
			example: `{"age": "2160h", "failures": "8760h"}`}, replies: keptRule, changes: true,
	}
	putAppRetentionDoc = operation{
		id: "putAppRetention", tag: tagCluster, unless: true, summary: "Set the retention of an app",
		about:   "The rule replaces the previous one. An empty rule falls back to the cluster's rule.",
		body:    &requestBody{of: of[view.Retention](), about: "The rule.", example: `{"age": "720h", "runs": 10000}`},
		replies: keptRule, changes: true,
	}
)
