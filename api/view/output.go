package view

import (
	"go-crontab/job"
)

// Output is the output of a run as JSON: the output up to now, or the part that was kept.
type Output struct {
	ID      string      `json:"id" doc:"The id of the run."`
	State   string      `json:"state" enum:"running,ended" doc:"Whether the run executes."`
	Outcome job.Outcome `json:"outcome,omitempty" doc:"How it ended."`
	From    int64       `json:"from" doc:"The byte at which the requested text begins."`
	Next    int64       `json:"next" doc:"The value of 'from' for the next request: 'text' has everything before it."`
	Bytes   int64       `json:"bytes" doc:"How many bytes the run has written, as far as is known."`
	Text    string      `json:"text" doc:"The output, with a separate line where bytes were dropped."`
}

// OutputEvent is a piece of the output of a run.
type OutputEvent struct {
	From  int64   `json:"from" doc:"The position of its first byte."`
	Next  int64   `json:"next" doc:"The position after its last byte."`
	Text  *string `json:"text,omitempty" doc:"The text, without 'raw'."`
	Bytes []byte  `json:"bytes,omitempty" doc:"The bytes in base64, with 'raw'."`
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
