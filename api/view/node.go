package view

import (
	"time"
)

type LogLevel struct {
	Node  string     `json:"node" doc:"The node that answers; each has its own."`
	Level string     `json:"level" enum:"debug,info,warn,error" doc:"The least level that is logged."`
	Until *time.Time `json:"until,omitempty" doc:"When the level that the node was started with holds again. Without it, it holds now, or the change stays until the process ends."`
}

// Node is a node as clients see it: its sessions (one, except for moments) and its cordon.
type Node struct {
	Name      string            `json:"name" doc:"Its name."`
	State     NodeState         `json:"state" doc:"How it is, in one word."`
	Labels    map[string]string `json:"labels" doc:"Its labels."`
	Handlers  []string          `json:"handlers" doc:"The handlers that it has."`
	Cordoned  bool              `json:"cordoned" doc:"Whether somebody said that it is to start nothing."`
	Draining  bool              `json:"draining" doc:"Whether it is to give back what it has not started, too."`
	Drained   bool              `json:"drained" doc:"Whether it is drained and has no work any more."`
	Reason    string            `json:"reason,omitempty" doc:"What was given for the cordon."`
	By        string            `json:"by,omitempty" doc:"Who cordoned it."`
	Since     *time.Time        `json:"since,omitempty" doc:"Since when it is cordoned."`
	Prepared  int               `json:"prepared" doc:"How many due times it holds ready."`
	Executing int               `json:"executing" doc:"How many runs it executes."`
	Slots     int               `json:"slots" doc:"How many it may execute at once; an HTTP request counts as a sixteenth of one."`
	Sessions  []NodeSession     `json:"sessions" doc:"Its sessions: one, but for moments."`
}

type NodeSession struct {
	ID        string    `json:"id" format:"uuid" doc:"Its id, a UUID."`
	Address   string    `json:"address,omitempty" doc:"Where the node says that it can be reached."`
	Version   string    `json:"version,omitempty" doc:"The version of the program."`
	ZoneData  string    `json:"zone_data,omitempty" doc:"Where the time zone data that it computes with is from, and a fingerprint of that: sessions with the same fingerprint compute the same due times."`
	Started   time.Time `json:"started" doc:"When it began."`
	BeatAgeMS int64     `json:"beat_age_ms" doc:"How many milliseconds ago it was last heard of."`
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
)
