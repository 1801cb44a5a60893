package view

import (
	"time"
)

// Stats is the state of the cluster, and its load in the last minutes.
type Stats struct {
	Now         time.Time   `json:"now" doc:"What MySQL's clock says."`
	Executing   int64       `json:"executing" doc:"Attempts that execute, as their rows say."`
	Prepared    int64       `json:"prepared" doc:"Due times that nodes hold ready."`
	Waiting     int64       `json:"waiting" doc:"Due times that wait for a run of their job, a slot of their group, or a node."`
	Backlog     int64       `json:"backlog" doc:"Due times that have come, are not started, and wait for nothing but a node's time."`
	Most        int64       `json:"most" doc:"How far these four are counted: what is equal to it may be more."`
	Slots       int         `json:"slots" doc:"How many attempts all nodes together may execute; an HTTP request counts as a sixteenth of one."`
	Nodes       []StatsNode `json:"nodes" doc:"The sessions of the nodes, as they told of themselves with their last beats."`
	StepSeconds int         `json:"step_seconds" doc:"How long one part of 'series' is."`
	Series      []StatsPart `json:"series" doc:"The last minutes in parts, the oldest first. The last ones may not be complete yet."`
	LastMinute  StatsRates  `json:"last_minute" doc:"The six parts before the current one."`
}

type StatsNode struct {
	Node      string `json:"node" doc:"The name of the node."`
	Session   string `json:"session" format:"uuid" doc:"Its session."`
	Slots     int    `json:"slots" doc:"How many attempts it may execute; an HTTP request counts as a sixteenth of one."`
	Executing int    `json:"executing" doc:"How many it executes."`
	Prepared  int    `json:"prepared" doc:"How many due times it holds ready."`
	Draining  bool   `json:"draining" doc:"Whether its process is about to end."`
}

type StatsPart struct {
	At     time.Time `json:"at" doc:"When it begins."`
	Starts int64     `json:"starts" doc:"Attempts that began in it."`
	Ends   int64     `json:"ends" doc:"Attempts that had begun and were over in it."`
	Failed int64     `json:"failed" doc:"Those of them that did not succeed."`
	P50    *float64  `json:"lateness_p50_ms,omitempty" doc:"Half of those that began were at most so late, in milliseconds."`
	P99    *float64  `json:"lateness_p99_ms,omitempty" doc:"99 of 100 were at most so late."`
}

type StatsRates struct {
	Starts float64  `json:"starts_per_second" doc:"Attempts that began."`
	Ends   float64  `json:"ends_per_second" doc:"Attempts that were over."`
	P50    *float64 `json:"lateness_p50_ms,omitempty" doc:"Half of those that began were at most so late, in milliseconds."`
	P99    *float64 `json:"lateness_p99_ms,omitempty" doc:"99 of 100 were at most so late."`
}
