package view

import (
	"go-crontab/job"
)

// Output is the output of a run as JSON. For an executing run it is the output so far. For an ended
// run it is the kept output. One answer has at most about 512 KiB of output.
type Output struct {
	ID      string      `json:"id" doc:"The id of the run."`
	State   string      `json:"state" enum:"running,ended" doc:"Whether the run executes."`
	Outcome job.Outcome `json:"outcome,omitempty" doc:"How it ended."`
	From    int64       `json:"from" doc:"The byte at which the requested text begins."`
	Next    int64       `json:"next" doc:"The value of 'from' for the next request: the answer has everything before it that is kept."`
	Bytes   int64       `json:"bytes" doc:"How many bytes the run has written, as far as is known."`
	Lines   int64       `json:"lines,omitempty" doc:"How many lines the whole output of an ended run has, with those that were not kept."`
	Text    string      `json:"text" doc:"The output, with a separate line where bytes were dropped. Empty with 'pieces'."`

	Pieces      []OutputEvent `json:"pieces,omitempty" doc:"With 'pieces': the output, piece by piece. Where one does not begin at the end of the previous one, the bytes between them were not kept."`
	Pending     bool          `json:"pending,omitempty" doc:"Whether its node is still writing parts of the output. Ask again in a second."`
	MarksStderr bool          `json:"marks_stderr,omitempty" doc:"Whether stdout and stderr were read apart, so that the stamps tell them apart."`
	HTTP        *HTTPAnswer   `json:"http,omitempty" doc:"The response to the request of an HTTP run, besides its body."`
}

// OutputEvent is a piece of the output of a run.
type OutputEvent struct {
	From   int64     `json:"from" doc:"The position of its first byte."`
	Next   int64     `json:"next" doc:"The position after its last byte."`
	Line   int64     `json:"line,omitempty" doc:"With 'pieces': the number of the line in which it begins, from 1, in the whole output."`
	Text   *string   `json:"text,omitempty" doc:"The text, without 'raw'."`
	Bytes  []byte    `json:"bytes,omitempty" doc:"The bytes in base64, with 'raw'."`
	Stamps [][]int64 `json:"stamps,omitempty" doc:"With 'pieces', but not in streams: [line, milliseconds, stderr]. The line and those after it came so long after the start (-1: unknown, as while it executes), and from stderr if the last number is 1. Without a stamp, a line came at the start, from stdout."`
}

// HTTPAnswer is the response to the request of an HTTP run, without its body.
type HTTPAnswer struct {
	Status      int        `json:"status" doc:"The status code."`
	Proto       string     `json:"proto,omitempty" doc:"The protocol."`
	Headers     [][]string `json:"headers,omitempty" doc:"The headers of a response that did not mean success, with secrets and cookies replaced by stars; at most 4 KiB."`
	ConnectedMS float64    `json:"connected_ms,omitempty" doc:"Milliseconds from the start until the connection of the last request was ready."`
	FirstByteMS float64    `json:"first_byte_ms,omitempty" doc:"Milliseconds until the headers of its response came."`
	CompleteMS  float64    `json:"complete_ms,omitempty" doc:"Milliseconds until the body was complete. Absent if it broke off."`
}

// OutputEnd says how a run ended.
type OutputEnd struct {
	Outcome    job.Outcome `json:"outcome"`
	ReasonCode string      `json:"reason_code,omitempty"`
	Reason     string      `json:"reason,omitempty"`
	ExitCode   *int        `json:"exit_code,omitempty"`
	Signal     string      `json:"signal,omitempty"`
	Bytes      int64       `json:"bytes"`
	Truncated  bool        `json:"truncated"`
}
