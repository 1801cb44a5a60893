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
		about: "For browsers. It uses only this API. Its screens, such as `/jobs`, `/runs` and `/cluster`, " +
			"are the same page.",
		cached: true, replies: pageReplies,
	}
	assetDoc = operation{
		id: "getPageFile", tag: tagNode, summary: "Files of the console",
		about:  "Scripts, styles and pictures. Their names change with their content, so they can be cached forever.",
		cached: true,
		replies: []reply{{status: http.StatusOK, about: "The file.", media: []string{mediaScript, mediaCSS, mediaSVG},
			headers: []string{"Content-Encoding", "Vary"}}}, problems: []kind{notFound},
	}
	healthzDoc = operation{
		id: "isAlive", tag: tagNode, summary: "Liveness of the process",
		about:   "It only shows that the process responds; the database is not asked. Any `Host` is accepted.",
		replies: found[view.Alive]("The process is alive."),
	}
	readyzDoc = operation{
		id: "isReady", tag: tagNode, summary: "Readiness of the node",
		about: "Whether the node has a session and a fresh lease, so that it can start jobs.",
		replies: []reply{
			{status: http.StatusOK, about: "The node is ready.", of: of[view.Ready]()},
			{status: http.StatusServiceUnavailable, about: "The node is not ready.", of: of[view.Ready]()},
		},
	}

	metricsDoc = operation{
		id: "getMetrics", tag: tagNode, summary: "Metrics of the node",
		about: "For Prometheus. Each node has its own; `docs/metrics.md` explains them. A token that is " +
			"limited to apps is refused. Any `Host` is accepted. " +
			"A node can be started so that its metrics need no token.",
		replies: []reply{{status: http.StatusOK, about: "The metrics, in the format of `Accept`.",
			media: []string{mediaPlain}, headers: []string{"Content-Encoding", "Vary"}}}, problems: []kind{notFound},
	}

	getLogLevelDoc = operation{
		id: "getLogLevel", tag: tagNode, summary: "Show the log level", about: "The level of the node that answers.",
		replies: found[view.LogLevel]("The level."), problems: []kind{notFound},
	}
	putLogLevelDoc = operation{
		id: "putLogLevel", tag: tagNode, once: true, summary: "Change the log level",
		about: "Changes the level of the node that answers, at once and without a restart. Send the request to that " +
			"node. The audit has a " +
			"line about it.",
		body: &requestBody{
			of: of[logLevelBody](), about: "The level, and how long it lasts.", example: `{"level": "debug", "for": "10m"}`,
		},
		replies: found[view.LogLevel]("The current level."), problems: []kind{notFound},
	}

	listNodesDoc = operation{
		id: "listNodes", tag: tagNodes, summary: "List nodes",
		about:   "Live nodes, and nodes that are cordoned or draining, by name.",
		replies: found[view.Page[*view.Node]]("All nodes."),
	}
	getNodeDoc = operation{
		id: "getNode", tag: tagNodes, summary: "Show a node",
		about:   "Its sessions, its load, and its cordon.",
		replies: found[*view.Node]("The node."), problems: []kind{notFound},
	}
	cordonNodeDoc = operation{
		id: "cordonNode", tag: tagNodes, once: true, summary: "Cordon a node",
		about: "The node starts nothing more; executing runs continue to their end. A cordon survives restarts of the node.",
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
		about: "Like a cordon, and prepared runs move to other nodes. The node is `drained` when nothing executes " +
			"any more.",
		query: []parameter{absentParam}, body: mayGiveReason, replies: changedNode, problems: []kind{notFound},
		changes: true,
	}

	listHandlersDoc = operation{
		id: "listHandlers", tag: tagHandlers, summary: "List handlers",
		about:   "Handlers that a node has registered, that a job uses, or that are disabled.",
		replies: found[view.Page[*view.Handler]]("All handlers."),
	}
	disableHandlerDoc = operation{
		id: "disableHandler", tag: tagHandlers, once: true, summary: "Disable a handler",
		about: "Due times of jobs that use it end `skipped`. It works even if no node has the handler and no job uses it.",
		body:  mayGiveReason, replies: changedHandler, changes: true,
	}
	enableHandlerDoc = operation{
		id: "enableHandler", tag: tagHandlers, once: true, summary: "Enable a handler", about: "Jobs that use it run again.",
		body: emptyBody, replies: changedHandler, changes: true,
	}
)

var (
	changedNode    = []reply{{status: http.StatusOK, about: "The current node.", of: of[view.Node]()}}
	changedHandler = []reply{{status: http.StatusOK, about: "The current handler.", of: of[view.Handler]()}}
)
