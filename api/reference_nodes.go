package api

import "go-crontab/api/view"

import "net/http"

// pageReplies are the replies of the console's routes.
var pageReplies = []reply{
	{
		status: http.StatusOK, about: "The page.", media: []string{mediaHTML},
		headers: []string{"Content-Encoding", "Vary"},
	},
}

var (
	homeDoc = operation{
		id: "home", tag: tagNode, summary: "The web console",
		about: "For browsers. It works by this API alone. Its screens, such as `/jobs`, `/runs` and `/cluster`, " +
			"have the same page.",
		cached: true, replies: pageReplies,
	}
	assetDoc = operation{
		id: "getPageFile", tag: tagNode, summary: "What the console loads",
		about:  "Scripts, styles and pictures. Their names change with what is in them, so they may be kept for ever.",
		cached: true,
		replies: []reply{{status: http.StatusOK, about: "The file.", media: []string{mediaScript, mediaCSS, mediaSVG},
			headers: []string{"Content-Encoding", "Vary"}}}, problems: []kind{notFound},
	}
	healthzDoc = operation{
		id: "isAlive", tag: tagNode, summary: "Does the process live?",
		about:   "That it answers is all there is to say: the database is not asked. Any `Host` is served.",
		replies: found[view.Alive]("It lives."),
	}
	readyzDoc = operation{
		id: "isReady", tag: tagNode, summary: "May the node start jobs?",
		about: "Whether the node has a session and a fresh lease.",
		replies: []reply{
			{status: http.StatusOK, about: "It may.", of: of[view.Ready]()},
			{status: http.StatusServiceUnavailable, about: "It may not.", of: of[view.Ready]()},
		},
	}

	metricsDoc = operation{
		id: "getMetrics", tag: tagNode, summary: "Metrics of the node",
		about: "For Prometheus; each node has its own, and `docs/metrics.md` says what they mean. A token that is " +
			"limited to apps does not do. Any `Host` is served. " +
			"A node may be started so that it needs no token.",
		replies: []reply{{status: http.StatusOK, about: "The metrics, in the format that `Accept` asks for.",
			media: []string{mediaPlain}, headers: []string{"Content-Encoding", "Vary"}}}, problems: []kind{notFound},
	}

	getLogLevelDoc = operation{
		id: "getLogLevel", tag: tagNode, summary: "Show the log level", about: "Of the node that answers.",
		replies: found[view.LogLevel]("The level."), problems: []kind{notFound},
	}
	putLogLevelDoc = operation{
		id: "putLogLevel", tag: tagNode, once: true, summary: "Change the log level",
		about: "Of the node that answers, at once and without a restart: ask the one that is meant. The audit has a " +
			"line about it.",
		body: &requestBody{
			of: of[logLevelBody](), about: "The level, and for how long.", example: `{"level": "debug", "for": "10m"}`,
		},
		replies: found[view.LogLevel]("The level that holds now."), problems: []kind{notFound},
	}

	listNodesDoc = operation{
		id: "listNodes", tag: tagNodes, summary: "List nodes",
		about:   "Those that live, and those of which somebody said something. Their order is that of their names.",
		replies: found[view.Page[*view.Node]]("The nodes, all of them."),
	}
	getNodeDoc = operation{
		id: "getNode", tag: tagNodes, summary: "Show a node",
		about:   "Its sessions, its load, and what people said about it.",
		replies: found[*view.Node]("The node."), problems: []kind{notFound},
	}
	cordonNodeDoc = operation{
		id: "cordonNode", tag: tagNodes, once: true, summary: "Cordon a node",
		about: "It starts nothing more; what executes runs to its end. A cordon outlives sessions.",
		query: []parameter{absentParam}, body: mayGiveReason, replies: changedNode, problems: []kind{notFound},
		changes: true,
	}
	uncordonNodeDoc = operation{
		id: "uncordonNode", tag: tagNodes, once: true, summary: "Uncordon a node", about: "Ends a cordon or a drain.",
		query: []parameter{absentParam}, body: emptyBody, replies: changedNode, problems: []kind{notFound},
		changes: true,
	}
	drainNodeDoc = operation{
		id: "drainNode", tag: tagNodes, once: true, summary: "Drain a node",
		about: "As a cordon, and what the node holds ready goes to others. It is `drained` when nothing executes " +
			"any more.",
		query: []parameter{absentParam}, body: mayGiveReason, replies: changedNode, problems: []kind{notFound},
		changes: true,
	}

	listHandlersDoc = operation{
		id: "listHandlers", tag: tagHandlers, summary: "List handlers",
		about:   "Those that a node has, a job names, or somebody has disabled.",
		replies: found[view.Page[*view.Handler]]("The handlers, all of them."),
	}
	disableHandlerDoc = operation{
		id: "disableHandler", tag: tagHandlers, once: true, summary: "Disable a handler",
		about: "Due times of jobs that name it end `skipped`. Nobody needs to have it, or to name it.",
		body:  mayGiveReason, replies: changedHandler, changes: true,
	}
	enableHandlerDoc = operation{
		id: "enableHandler", tag: tagHandlers, once: true, summary: "Enable a handler", about: "Ends what disabled it.",
		body: emptyBody, replies: changedHandler, changes: true,
	}
)

var (
	changedNode    = []reply{{status: http.StatusOK, about: "The node as it is now.", of: of[view.Node]()}}
	changedHandler = []reply{{status: http.StatusOK, about: "The handler as it is now.", of: of[view.Handler]()}}
)
