package api

import (
	"net/http"

	"go-crontab/api/view"
	"go-crontab/job"
)

var (
	auditKind   = wordParam{declared{"kind", "Only changes of this kind of thing.", "job"}, auditKinds}
	auditName   = textParam{declared{"name", "Only changes of what has this name.", "backup"}, job.MaxName}
	auditAction = wordParam{declared{"action", "Only these changes.", "delete"}, auditActions}
	chainAfter  = numberParam{
		declared{"after", "Only links behind this number. Without it, from the oldest on.", "5000"}, maxID, 0,
	}
	chainHead = textParam{
		declared{"head",
			"A link that was kept elsewhere, as `head` of an earlier answer, the log of a node, or a copy of the " +
				"audit has it: SEQ:HASH.", "204:" + exampleHash}, 100,
	}
	auditWho     = textParam{declared{"who", "Only changes by this one.", "alice"}, job.MaxName}
	statsMinutes = numberParam{declared{"minutes", "How far back `series` goes.", "10"}, 15, 5}
	eventKinds   = wordsParam{
		declared{"kinds",
			"Only these, with commas between them; `run` has `runs` with it. `hello`, `reload` and `close` come in " +
				"any case.", "run,job"}, []string{"run", "job", "pause", "node", "backfill", "alert", "change"},
	}
	auditFrom = instantParam{
		declared: declared{"from", "Only changes at this instant or after it.", "2027-01-31T00:00:00Z"},
	}
	auditBefore = instantParam{declared: declared{"to", "Only changes before this instant.", "2027-02-01T00:00:00Z"}}
)

var (
	madePause    = []reply{{status: http.StatusOK, about: "The pause.", of: of[view.Pause]()}}
	pausesThatGo = found[view.Page[*view.Pause]]("The pauses that are left.")
)

var (
	clusterDoc = operation{
		id: "getCluster", tag: tagCluster, summary: "Show the cluster",
		about:   "The sessions of its nodes, as they told of themselves with their last beats.",
		replies: found[view.Cluster]("The cluster."),
	}
	statsDoc = operation{
		id: "getStats", tag: tagCluster, summary: "Show how much the cluster does",
		about: "What executes, waits and is overdue now; what each node has room for; and how much began and ended, " +
			"and how late, in each ten seconds of the last minutes. " +
			"Each node counts by itself and writes its counts every ten seconds. What is counted where is in " +
			"`docs/events.md`.",
		query: []parameter{statsMinutes}, replies: found[view.Stats]("The figures."),
	}
	eventsDoc = operation{
		id: "watchEvents", tag: tagCluster, summary: "Watch what changes",
		about: "A stream of server-sent events, told within about a second: runs that start and end, jobs, pauses, " +
			"nodes, backfills and whatever else changes. " +
			"The `event` of a message is its `kind`. It begins with `hello`: whoever reads what it shows then, and " +
			"applies what is told from there on, misses nothing; " +
			"`reload` says that something could not be told, and that it is to be read anew. Many runs at once are " +
			"counted, in `runs`. `close` says why the stream ends. " +
			"Kinds, rules and bounds are in `docs/events.md`.",
		query: []parameter{ofAppParam, ofJobParam, eventKinds}, streams: true,
		replies: []reply{
			{
				status: http.StatusOK, about: "Events as they come.", stream: of[view.Event](),
				headers: []string{accelHeader},
			},
		},
	}
	pauseClusterDoc = operation{
		id: "pauseCluster", tag: tagCluster, once: true, summary: "Pause the cluster",
		about: "No job has due times until it is resumed. Answered once nothing starts any more.",
		body:  mayLimitPause, replies: madePause, changes: true,
	}
	resumeClusterDoc = operation{
		id: "resumeCluster", tag: tagCluster, once: true, summary: "Resume the cluster",
		about: "What was due in the pause is a misfire of its job. Pauses of jobs and apps stay.",
		body:  emptyBody, replies: pausesThatGo, changes: true,
	}
	pauseAppDoc = operation{
		id: "pauseApp", tag: tagCluster, once: true, summary: "Pause an app",
		about: "Its jobs have no due times until it is resumed, those that are added meanwhile included.",
		query: []parameter{absentParam}, body: mayLimitPause, replies: madePause, problems: []kind{notFound},
		changes: true,
	}
	resumeAppDoc = operation{
		id: "resumeApp", tag: tagCluster, once: true, summary: "Resume an app",
		about: "What was due in the pause is a misfire of its job. Pauses of its jobs stay.",
		query: []parameter{absentParam}, body: emptyBody, replies: pausesThatGo, problems: []kind{notFound},
		changes: true,
	}
	listAppsDoc = operation{
		id: "listApps", tag: tagCluster, summary: "List apps",
		about:   "Those that have jobs. Their order is that of their names.",
		replies: found[view.Page[*view.App]]("The apps, all of them."),
	}
	listPausesDoc = operation{
		id: "listPauses", tag: tagCluster, summary: "List pauses of apps and of the cluster",
		about:   "Those that have not ended.",
		replies: found[view.Page[*view.Pause]]("The pauses, all of them."),
	}
	listAuditDoc = operation{
		id: "listAudit", tag: tagCluster, summary: "List changes",
		about: "Who changed what, from where, and why, the latest first.",
		query: []parameter{
			ofAppParam, ofJobParam, auditName, auditWho, auditAction, auditKind, auditFrom, auditBefore, limitParam,
			pageParam,
		},
		replies: found[view.Page[*view.AuditEntry]]("A page of changes."),
	}
	verifyAuditDoc = operation{
		id: "verifyAudit", tag: tagCluster, summary: "Verify the audit",
		about: "Every audit line has a link in a chain of hashes. This computes the hashes of up to 5,000 links " +
			"again and says where a line was changed or removed. " +
			"Ask again behind `next` until there is none. With `head` it also checks that the chain still has a link " +
			"that was kept elsewhere.",
		query:   []parameter{chainAfter, chainHead},
		replies: found[view.AuditChain]("What was found. Without faults the lines are as they were chained."),
	}
)

const exampleHash = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
