package view

import (
	"time"
)

type LogLevel struct {
	Node  string     `json:"node" doc:"The node that answers. Each node has its own level."`
	Level string     `json:"level" enum:"debug,info,warn,error" doc:"The lowest level that is logged."`
	Until *time.Time `json:"until,omitempty" doc:"When the level of the node's start applies again. Absent if it applies now, or if the change lasts until the process ends."`
}

// Node is a node as clients see it, with its sessions and its cordon. It has two sessions only for
// moments.
type Node struct {
	Name      string            `json:"name" doc:"Its name."`
	State     NodeState         `json:"state" doc:"The state of the node."`
	Labels    map[string]string `json:"labels" doc:"Its labels."`
	Handlers  []string          `json:"handlers" doc:"The handlers that it has registered."`
	Cordoned  bool              `json:"cordoned" doc:"Whether it is cordoned, so that it starts nothing."`
	Draining  bool              `json:"draining" doc:"Whether it is draining, so that it also gives back its prepared runs."`
	Drained   bool              `json:"drained" doc:"Whether it is drained and has no work left."`
	Reason    string            `json:"reason,omitempty" doc:"The reason for the cordon."`
	By        string            `json:"by,omitempty" doc:"Who cordoned it."`
	Since     *time.Time        `json:"since,omitempty" doc:"When it was cordoned."`
	Prepared  int               `json:"prepared" doc:"How many prepared runs it holds."`
	Executing int               `json:"executing" doc:"How many runs it executes."`
	Slots     int               `json:"slots" doc:"How many runs it can execute at once. An HTTP request counts as a sixteenth of one."`
	Gone      *time.Time        `json:"gone,omitempty" doc:"When its last session ended, with the state 'gone' or 'left'."`
	Lost      int64             `json:"lost_runs,omitempty" doc:"How many runs were lost with that session."`
	Sessions  []NodeSession     `json:"sessions" doc:"Its sessions: one, except for short moments."`
}

type NodeSession struct {
	ID        string    `json:"id" format:"uuid" doc:"Its id, a UUID."`
	Address   string    `json:"address,omitempty" doc:"The address at which the node can be reached."`
	Version   string    `json:"version,omitempty" doc:"The version of the program."`
	ZoneData  string    `json:"zone_data,omitempty" doc:"The source of its time zone data, and a fingerprint of it. Sessions with the same fingerprint compute the same due times."`
	Started   time.Time `json:"started" doc:"When it began."`
	BeatAgeMS int64     `json:"beat_age_ms" doc:"The age of its last heartbeat, in milliseconds."`
}

// NodeState is the state of a node in one word.
type NodeState string

// The states of nodes.
const (
	NodeReady     NodeState = "ready"
	NodeCordoning NodeState = "cordoning" // cordoned a moment ago; it may still start something
	NodeCordoned  NodeState = "cordoned"
	NodeDraining  NodeState = "draining"
	NodeDrained   NodeState = "drained"
	NodeStopping  NodeState = "stopping" // the process is about to end
	NodeSilent    NodeState = "silent"   // without fresh heartbeats: it starts nothing
	NodeAbsent    NodeState = "absent"   // without a session
	NodeGone      NodeState = "gone"     // its session expired in the last 24 hours, and it is not back
	NodeLeft      NodeState = "left"     // it was stopped in order in the last 24 hours, and has not come back
)
