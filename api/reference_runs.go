package api

import (
	"net/http"

	"go-crontab/api/view"
	"go-crontab/job"
)

var (
	runStateParam = wordParam{
		declared{"state", "Only executing runs, or only ended ones.", "running"},
		[]string{running, ended},
	}
	triggerParam = wordParam{
		declared{"trigger", "Only runs with this trigger: the schedule, a run by hand, or a backfill.",
			"manual"}, []string{"schedule", "manual", "backfill", "after"},
	}
	onNodeParam = textParam{declared{"node", "Only runs on this node.", "node-1"}, job.MaxName}
	rawOutput   = wordParam{
		declared{"raw", "The raw bytes, instead of text for people.", "true"},
		[]string{"0", "1", "false", "true"},
	}
	piecesOutput = wordParam{
		declared{"pieces", "The output in pieces, with true line numbers and stamps, as JSON or in a stream.", "true"},
		[]string{"0", "1", "false", "true"},
	}
	outputFrom = offsetParam{
		declared{
			"from", "Only the output from this byte on. The answer is then JSON, unless `raw` is given too.", "4096",
		},
	}
)

var (
	listRunsDoc = operation{
		id: "listRuns", tag: tagRuns, summary: "List runs",
		about: "Executing runs first, then ended runs, the latest due time first. An executing run has no " +
			"outcome yet, " +
			"so a list by `outcome` only has ended runs. " +
			"If several parameters match many runs each but few together, a page may have fewer items than it " +
			"could, or none, and still a `next`.",
		query: []parameter{
			ofJobParam, jobNamedParam, ofAppParam, runStateParam, endedParam, triggerParam, onNodeParam, dueFromParam, dueBeforeParam,
			limitParam, pageParam,
		},
		replies: found[view.Page[*view.Run]]("A page of runs."), problems: []kind{notFound},
	}
	getRunDoc = operation{
		id: "getRun", tag: tagRuns, summary: "Show a run", about: "With its output, if it has ended.",
		replies: found[*view.Run]("The run."), problems: []kind{notFound},
	}
	outputDoc = operation{
		id: "getOutput", tag: tagRuns, summary: "Read the output of a run",
		about: "While the run executes, its output so far, a second or two late; afterwards the kept output. To " +
			"follow it, ask again with `from`: " +
			"the `next` of the previous answer. An answer of JSON has about 512 KiB at most, so ask again until `next` no longer " +
			"grows. The answer is text for people; with `from`, or if only JSON " +
			"is accepted, it is JSON; with `raw` it is the raw bytes, " +
			"and with `raw` and `from` only the first piece without a gap, whose position is in the headers.\n\n" +
			"If `text/event-stream` is accepted, it is a stream until the run has ended: messages `output`, each " +
			"with the bytes from `from` to `next` as `text` or, with `raw`, in base64 as `bytes`, " +
			"and finally `end`, which says how the run ended, once its node has stored the whole output. Their `id` is " +
			"the position after them. Messages and rules are in `docs/events.md`.",
		streams: true,
		query:   []parameter{rawOutput, piecesOutput, outputFrom},
		replies: []reply{{status: http.StatusOK, about: "The output.", of: of[view.Output](),
			media: []string{mediaPlain, mediaBytes}, stream: of[view.OutputEvent](),
			headers: []string{"Output-State", "Output-Pending", "Output-From", "Output-Next", accelHeader}}},
		problems: []kind{notFound},
	}
	killRunDoc = operation{
		id: "killRun", tag: tagRuns, once: true, summary: "Kill a run",
		about: "The answer comes once the request is stored for the node that executes the run. The run ends `killed` " +
			"and is not retried.",
		body: emptyBody, changes: true, problems: []kind{notFound, hasEnded},
		replies: []reply{{status: http.StatusAccepted, about: "The run, which will be killed.", of: of[view.Run]()}},
	}
)
