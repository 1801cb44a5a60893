package view

import (
	"go-crontab/job"
)

// Output is the output of a run as JSON: the output up to now, or the part that was kept.
type Output struct {
	ID      string      `json:"id" doc:"The id of the run."`
	State   string      `json:"state" enum:"running,ended" doc:"Whether the run executes."`
	Outcome job.Outcome `json:"outcome,omitempty" doc:"How it ended."`
	From    int64       `json:"from" doc:"The byte from which the text was asked for."`
	Next    int64       `json:"next" doc:"The byte to ask for next: 'text' has everything up to there."`
	Bytes   int64       `json:"bytes" doc:"How many bytes were written in all, as far as is known."`
	Text    string      `json:"text" doc:"What was written, with a line of its own where bytes were dropped."`
}

// OutputEvent is a piece of the output of a run.
type OutputEvent struct {
	From  int64   `json:"from" doc:"The byte at which it begins."`
	Next  int64   `json:"next" doc:"The byte behind it."`
	Text  *string `json:"text,omitempty" doc:"What it says, without 'raw'."`
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
