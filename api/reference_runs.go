package api

import "go-crontab/job"

var (
	runStateParam = wordParam{declared{"state", "Only runs that execute, or only those that have ended.", "running"}, []string{running, ended}}
	onNodeParam   = textParam{declared{"node", "Only runs of this node.", "node-1"}, job.MaxName}
	rawOutput     = wordParam{declared{"raw", "The bytes as they are, instead of text for people.", "true"}, []string{"0", "1", "false", "true"}}
	outputFrom    = offsetParam{declared{"from", "Only what is behind so many bytes; the answer is JSON then, unless `raw` is given too.", "4096"}}
)

var (
	listRunsDoc = operation{id: "listRuns", query: []parameter{ofJobParam, ofAppParam, runStateParam, endedParam, onNodeParam, dueFromParam, dueBeforeParam, limitParam, pageParam}}
	getRunDoc   = operation{id: "getRun"}
	outputDoc   = operation{id: "getOutput", query: []parameter{rawOutput, outputFrom}}
	killRunDoc  = operation{id: "killRun"}
)
