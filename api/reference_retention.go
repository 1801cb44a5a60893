package api

import "go-crontab/api/view"

import "net/http"

var keptRule = []reply{{status: http.StatusOK, about: "The rule as it is now.", of: of[view.Retention]()}}

var (
	listRetentionDoc = operation{
		id: "listRetention", tag: tagCluster, summary: "Show which records are kept",
		about: "The rules of the cluster and of apps, and how the removal stands. Each field that a job leaves out " +
			"is as its app's rule says, and then the cluster's; where nobody says anything, all is kept.",
		replies: found[view.Retentions]("The rules, all of them."),
	}
	putRetentionDoc = operation{
		id: "putRetention", tag: tagCluster, unless: true, summary: "Say which records the cluster keeps",
		about: "The rule takes the place of the one before. An empty one keeps all.",
		body: &requestBody{of: of[view.Retention](), about: "The rule.",
			example: `{"age": "2160h", "failures": "8760h"}`}, replies: keptRule, changes: true,
	}
	putAppRetentionDoc = operation{
		id: "putAppRetention", tag: tagCluster, unless: true, summary: "Say which records an app keeps",
		about:   "The rule takes the place of the one before. An empty one leaves it to the cluster's.",
		body:    &requestBody{of: of[view.Retention](), about: "The rule.", example: `{"age": "720h", "runs": 10000}`},
		replies: keptRule, changes: true,
	}
)
