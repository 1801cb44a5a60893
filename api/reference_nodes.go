package api

var (
	homeDoc    = operation{id: "home"}
	healthzDoc = operation{id: "isAlive"}
	readyzDoc  = operation{id: "isReady"}

	listNodesDoc    = operation{id: "listNodes"}
	getNodeDoc      = operation{id: "getNode"}
	cordonNodeDoc   = operation{id: "cordonNode"}
	uncordonNodeDoc = operation{id: "uncordonNode"}
	drainNodeDoc    = operation{id: "drainNode"}

	listHandlersDoc   = operation{id: "listHandlers"}
	disableHandlerDoc = operation{id: "disableHandler"}
	enableHandlerDoc  = operation{id: "enableHandler"}
)
