package view

import (
	"time"
)

// Stats is the state of the cluster, and its load in the last minutes.
type Stats struct {
	Now         time.Time   `json:"now" doc:"The time by MySQL's clock."`
	Executing   int64       `json:"executing" doc:"The number of attempts that are executing."`
	Prepared    int64       `json:"prepared" doc:"The number of prepared runs on nodes."`
	Waiting     int64       `json:"waiting" doc:"The number of due times that wait for a run of their job, a slot of their group, or a node."`
	Backlog     int64       `json:"backlog" doc:"The number of due times that have passed without a start and wait for nothing but a node."`
	Most        int64       `json:"most" doc:"The limit up to which these four are counted: a number equal to it may be larger."`
	Slots       int         `json:"slots" doc:"How many attempts all nodes together can execute. An HTTP request counts as a sixteenth of one."`
	Nodes       []StatsNode `json:"nodes" doc:"The sessions of the nodes, as of their last heartbeats."`
	StepSeconds int         `json:"step_seconds" doc:"The length of one part of 'series'."`
	Series      []StatsPart `json:"series" doc:"The last minutes in parts, the oldest first. The latest parts may not be complete yet."`
	LastMinute  StatsRates  `json:"last_minute" doc:"The six parts before the current one."`
}

type StatsNode struct {
	Node      string `json:"node" doc:"The name of the node."`
	Session   string `json:"session" format:"uuid" doc:"Its session."`
	Slots     int    `json:"slots" doc:"How many attempts it can execute. An HTTP request counts as a sixteenth of one."`
	Executing int    `json:"executing" doc:"How many attempts it is executing."`
	Prepared  int    `json:"prepared" doc:"How many prepared runs it holds."`
	Draining  bool   `json:"draining" doc:"Whether its process is shutting down."`
}

type StatsPart struct {
	At     time.Time `json:"at" doc:"When it begins."`
	Starts int64     `json:"starts" doc:"The number of attempts that started in this part."`
	Ends   int64     `json:"ends" doc:"The number of started attempts that ended in this part."`
	Failed int64     `json:"failed" doc:"How many of those did not succeed."`
	P50    *float64  `json:"lateness_p50_ms,omitempty" doc:"The median lateness of the started attempts, in milliseconds."`
	P99    *float64  `json:"lateness_p99_ms,omitempty" doc:"The 99th percentile of their lateness, in milliseconds."`
}

type StatsRates struct {
	Starts float64  `json:"starts_per_second" doc:"How many attempts started, per second."`
	Ends   float64  `json:"ends_per_second" doc:"How many attempts ended, per second."`
	P50    *float64 `json:"lateness_p50_ms,omitempty" doc:"The median lateness of the started attempts, in milliseconds."`
	P99    *float64 `json:"lateness_p99_ms,omitempty" doc:"The 99th percentile of their lateness, in milliseconds."`
}
