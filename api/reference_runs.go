package api

import (
	"net/http"

	"go-crontab/api/view"
	"go-crontab/job"
)

var (
	runStateParam = wordParam{
		declared{"state", "Only runs that execute, or only those that have ended.", "running"},
		[]string{running, ended},
	}
	triggerParam = wordParam{
		declared{"trigger", "Only runs that this made due: the schedule, somebody who asked for it, or a backfill.",
			"manual"}, []string{"schedule", "manual", "backfill"},
	}
	onNodeParam = textParam{declared{"node", "Only runs of this node.", "node-1"}, job.MaxName}
	rawOutput   = wordParam{
		declared{"raw", "The bytes as they are, instead of text for people.", "true"},
		[]string{"0", "1", "false", "true"},
	}
	outputFrom = offsetParam{
		declared{
			"from", "Only what is behind so many bytes; the answer is JSON then, unless `raw` is given too.", "4096",
		},
	}
)

var (
	listRunsDoc = operation{
		id: "listRuns", tag: tagRuns, summary: "List runs",
		about: "First those that execute, then those that have ended, the latest due first. What is running has no " +
			"outcome yet, " +
			"so a list by `outcome` has only what has ended. " +
			"Where several parameters each match many runs and few together, a page may have fewer items than it " +
			"could, or none, and yet a `next`.",
		query: []parameter{
			ofJobParam, ofAppParam, runStateParam, endedParam, triggerParam, onNodeParam, dueFromParam, dueBeforeParam,
			limitParam, pageParam,
		},
		replies: found[view.Page[*view.Run]]("A page of runs."),
	}
	getRunDoc = operation{
		id: "getRun", tag: tagRuns, summary: "Show a run", about: "With its output, if it has ended.",
		replies: found[*view.Run]("The run."), problems: []kind{notFound},
	}
	outputDoc = operation{
		id: "getOutput", tag: tagRuns, summary: "Read the output of a run",
		about: "While the run executes, what it has written so far, a second or two behind; then what was kept. To " +
			"follow it, ask again with `from`: " +
			"the `next` of the answer before. It is text for people; JSON where `from` is given, or where JSON alone " +
			"is accepted; with `raw` the bytes as they are, " +
			"and with `raw` and `from` only those of the first piece without a gap, which the headers name.\n\n" +
			"Where `text/event-stream` is accepted it is a stream, until the run has ended: messages `output`, each " +
			"with the bytes from `from` to `next` as `text` or, with `raw`, in base64 as `bytes`, " +
			"and at last `end`, which says how the run ended. Their `id` is the byte behind them. Messages and rules " +
			"are in `docs/events.md`.",
		streams: true,
		query:   []parameter{rawOutput, outputFrom},
		replies: []reply{{status: http.StatusOK, about: "The output.", of: of[view.Output](),
			media: []string{mediaPlain, mediaBytes}, stream: of[view.OutputEvent](),
			headers: []string{"Output-State", "Output-From", "Output-Next", accelHeader}}},
		problems: []kind{notFound},
	}
	killRunDoc = operation{
		id: "killRun", tag: tagRuns, once: true, summary: "Kill a run",
		about: "Answered when the wish is written down for the node that executes the run; the run ends `killed`, " +
			"and is not tried again.",
		body: emptyBody, changes: true, problems: []kind{notFound, hasEnded},
		replies: []reply{{status: http.StatusAccepted, about: "The run that is to be killed.", of: of[view.Run]()}},
	}
)
