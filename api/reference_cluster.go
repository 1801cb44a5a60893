package api

import (
	"net/http"

	"go-crontab/api/view"
	"go-crontab/job"
)

var (
	auditKind   = wordParam{declared{"kind", "Only changes to this kind of object.", "job"}, auditKinds}
	auditName   = textParam{declared{"name", "Only changes to objects with this name.", "backup"}, job.MaxName}
	auditAction = wordParam{declared{"action", "Only changes with this action.", "delete"}, auditActions}
	chainAfter  = numberParam{
		declared{"after", "Only links after this number. Without it, from the oldest on.", "5000"}, maxID, 0,
	}
	chainHead = textParam{
		declared{"head",
			"A link that was kept elsewhere: the `head` of an earlier answer, or from the log of a node or a copy of the " +
				"audit. Written as SEQ:HASH.", "204:" + exampleHash}, 100,
	}
	auditWho     = textParam{declared{"who", "Only changes by this name.", "alice"}, job.MaxName}
	statsMinutes = numberParam{declared{"minutes", "How far back `series` goes.", "10"}, 15, 5}
	eventKinds   = wordsParam{
		declared{"kinds",
			"Only these kinds, separated by commas; `run` includes `runs`. `hello`, `reload` and `close` always " +
				"come.", "run,job"}, []string{"run", "job", "pause", "node", "backfill", "alert", "change"},
	}
	auditFrom = instantParam{
		declared: declared{"from", "Only changes at or after this time.", "2027-01-31T00:00:00Z"},
	}
	auditBefore = instantParam{declared: declared{"to", "Only changes before this time.", "2027-02-01T00:00:00Z"}}
)

var (
	madePause    = []reply{{status: http.StatusOK, about: "The pause.", of: of[view.Pause]()}}
	pausesThatGo = found[view.Page[*view.Pause]]("The remaining pauses.")
)

// backupBody describes the body for Server.putBackup.
type backupBody struct {
	NextWithin job.Duration `json:"next_within" doc:"The time in which the next backup is expected, from 1m to 8784h."`
}

var (
	clusterDoc = operation{
		id: "getCluster", tag: tagCluster, summary: "Show the cluster",
		about:   "The sessions of its nodes, as of their last heartbeats.",
		replies: found[view.Cluster]("The cluster."),
	}
	putBackupDoc = operation{
		id: "putBackup", tag: tagCluster, summary: "Tell of a backup",
		about: "A backup of the database has just been made. If this is not sent again in time, `doctor`, a metric and " +
			"the alert event `backup_old` say so. The answer of `GET /api/v1/cluster` has the last one.",
		body: &requestBody{
			of: of[backupBody](), about: "When the next backup is expected.", example: `{"next_within": "26h"}`,
		},
		replies:  []reply{{status: http.StatusOK, about: "The backup.", of: of[view.Backup]()}},
		problems: []kind{unknownOutcome},
	}
	statsDoc = operation{
		id: "getStats", tag: tagCluster, summary: "Show the load of the cluster",
		about: "What executes, waits and is overdue now; the free slots of each node; and how much started and ended, " +
			"and how late, in each ten seconds of the last minutes. " +
			"Each node counts by itself and writes its counts every ten seconds. The details are in " +
			"`docs/events.md`.",
		query: []parameter{statsMinutes}, replies: found[view.Stats]("The figures."),
	}
	eventsDoc = operation{
		id: "watchEvents", tag: tagCluster, summary: "Watch events",
		about: "A stream of server-sent events within about a second: runs that start and end, changes to jobs, pauses, " +
			"nodes, backfills and everything else. " +
			"The `event` of a message is its `kind`. The stream begins with `hello`: a client that then reads the state, and " +
			"applies all events from there on, misses nothing. " +
			"`reload` says that events were lost, so the client must read the state again. Many runs at once are " +
			"counted in `runs`. `close` says why the stream ends. " +
			"Kinds, rules and bounds are in `docs/events.md`.",
		query: []parameter{ofAppParam, ofJobParam, eventKinds}, streams: true,
		replies: []reply{
			{
				status: http.StatusOK, about: "The events.", stream: of[view.Event](),
				headers: []string{accelHeader},
			},
		},
	}
	pauseClusterDoc = operation{
		id: "pauseCluster", tag: tagCluster, once: true, summary: "Pause the cluster",
		about: "No job has due times until the cluster is resumed. The answer comes once nothing starts any more.",
		body:  mayLimitPause, replies: madePause, changes: true,
	}
	resumeClusterDoc = operation{
		id: "resumeCluster", tag: tagCluster, once: true, summary: "Resume the cluster",
		about: "Due times during the pause are misfires of their jobs. Pauses of jobs and apps stay.",
		body:  emptyBody, replies: pausesThatGo, changes: true,
	}
	pauseAppDoc = operation{
		id: "pauseApp", tag: tagCluster, once: true, summary: "Pause an app",
		about: "Its jobs have no due times until the app is resumed, including jobs that are added in the meantime.",
		query: []parameter{absentParam}, body: mayLimitPause, replies: madePause, problems: []kind{notFound},
		changes: true,
	}
	resumeAppDoc = operation{
		id: "resumeApp", tag: tagCluster, once: true, summary: "Resume an app",
		about: "Due times during the pause are misfires of their jobs. Pauses of its jobs stay.",
		query: []parameter{absentParam}, body: emptyBody, replies: pausesThatGo, problems: []kind{notFound},
		changes: true,
	}
	listAppsDoc = operation{
		id: "listApps", tag: tagCluster, summary: "List apps",
		about:   "Apps that have jobs, by name.",
		replies: found[view.Page[*view.App]]("All apps."),
	}
	listPausesDoc = operation{
		id: "listPauses", tag: tagCluster, summary: "List pauses of apps and of the cluster",
		about:   "Pauses that have not ended.",
		replies: found[view.Page[*view.Pause]]("All pauses."),
	}
	listAuditDoc = operation{
		id: "listAudit", tag: tagCluster, summary: "List changes",
		about: "The audit: who changed what, from where, and why. The latest change comes first.",
		query: []parameter{
			ofAppParam, ofJobParam, jobNamedParam, auditName, auditWho, auditAction, auditKind, auditFrom, auditBefore, limitParam,
			pageParam,
		},
		replies: found[view.Page[*view.AuditEntry]]("A page of changes."), problems: []kind{notFound},
	}
	verifyAuditDoc = operation{
		id: "verifyAudit", tag: tagCluster, summary: "Verify the audit",
		about: "Every audit line has a link in a chain of hashes. This operation recomputes the hashes of up to 5,000 " +
			"links " +
			"and reports where a line was changed or removed. " +
			"Repeat it with `next` as `after` until there is no `next`. With `head` it also checks that the chain still " +
			"has a link " +
			"that was kept elsewhere.",
		query:   []parameter{chainAfter, chainHead},
		replies: found[view.AuditChain]("The result. Without faults, the lines are unchanged."),
	}
)

const exampleHash = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
