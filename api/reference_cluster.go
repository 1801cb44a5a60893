package api

import (
	"go-crontab/job"
)

var (
	auditKind   = textParam{declared{"kind", "Only changes of this kind of thing.", "job"}, 16}
	auditWho    = textParam{declared{"who", "Only changes by this one.", "alice"}, job.MaxName}
	auditFrom   = instantParam{declared: declared{"from", "Only changes at this instant or after it.", "2027-01-31T00:00:00Z"}}
	auditBefore = instantParam{declared: declared{"to", "Only changes before this instant.", "2027-02-01T00:00:00Z"}}
)

var (
	clusterDoc       = operation{id: "getCluster"}
	pauseClusterDoc  = operation{id: "pauseCluster"}
	resumeClusterDoc = operation{id: "resumeCluster"}
	pauseAppDoc      = operation{id: "pauseApp"}
	resumeAppDoc     = operation{id: "resumeApp"}
	listPausesDoc    = operation{id: "listPauses"}
	listAuditDoc     = operation{id: "listAudit", query: []parameter{auditKind, ofAppParam, ofJobParam, auditWho, auditFrom, auditBefore, limitParam, pageParam}}
)
