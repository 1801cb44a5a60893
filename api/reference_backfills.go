package api

var (
	startBackfillDoc  = operation{id: "startBackfill"}
	listBackfillsDoc  = operation{id: "listBackfills", query: []parameter{ofJobParam, limitParam, pageParam}}
	getBackfillDoc    = operation{id: "getBackfill"}
	cancelBackfillDoc = operation{id: "cancelBackfill"}
)
