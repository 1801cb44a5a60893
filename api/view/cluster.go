package view

import (
	"time"

	"go-crontab/job"
)

// Cluster is the cluster as its nodes described it with their last heartbeats.
type Cluster struct {
	Now           time.Time `json:"now" doc:"What MySQL's clock says."`
	Node          string    `json:"node" doc:"The node that answers."`
	Version       string    `json:"version" doc:"Its version."`
	Server        string    `json:"server" doc:"What the database says it is."`
	Schema        int64     `json:"schema" doc:"The version of the schema: that of the latest migration."`
	SessionExpiry string    `json:"session_expiry,omitempty" doc:"After how long without a sign a session is buried. Absent before the first node has said it."`
	Sessions      []Session `json:"sessions" doc:"What the nodes told of themselves with their last beats."`
	Folders       []*Folder `json:"folders,omitempty" doc:"The folders with files of jobs that nodes follow. Absent when there is none, and for who is limited to apps."`
}

type Session struct {
	ID            string    `json:"id" format:"uuid" doc:"Its id, a UUID."`
	Node          string    `json:"node" doc:"The name of its node."`
	Address       string    `json:"address" doc:"Where the node says that it can be reached."`
	PID           int       `json:"pid" doc:"The id of its process."`
	Version       string    `json:"version" doc:"The version of the program."`
	Started       time.Time `json:"started" doc:"When it began."`
	BeatAt        time.Time `json:"beat_at" doc:"When it was last heard of."`
	BeatAgeMS     int64     `json:"beat_age_ms" doc:"How many milliseconds ago that was."`
	Draining      bool      `json:"draining" doc:"Whether its process is about to end."`
	Prepared      int       `json:"prepared" doc:"How many due times it holds ready."`
	Executing     int       `json:"executing" doc:"How many runs it executes."`
	Slots         int       `json:"slots" doc:"How many it may execute at once; an HTTP request counts as a sixteenth of one."`
	ClockOffsetMS float64   `json:"clock_offset_ms" doc:"MySQL's clock minus the node's, in milliseconds."`
}

// Folder is a folder of job files that nodes follow.
type Folder struct {
	Folder  string        `json:"folder" doc:"Its path, the same on all nodes that follow it."`
	Digest  string        `json:"digest,omitempty" doc:"Of what was applied last; absent before anything was."`
	Applied *time.Time    `json:"applied,omitempty" doc:"When that was."`
	Node    string        `json:"node,omitempty" doc:"The node that did it."`
	Nodes   []*FolderNode `json:"nodes" doc:"The nodes that follow it, or did so within a day."`
}

type FolderNode struct {
	Node   string         `json:"node" doc:"Its name."`
	State  job.FolderWord `json:"state" doc:"How its folder stands to what is applied."`
	Digest string         `json:"digest,omitempty" doc:"Of what its folder holds; absent if that cannot be read."`
	Error  string         `json:"error,omitempty" doc:"Why that was refused, with the places in the files."`
	Since  time.Time      `json:"since" doc:"Since when it is so."`
}

type Alive struct {
	Status string `json:"status" enum:"ok" doc:"That it is."`
}

type Ready struct {
	Ready  bool   `json:"ready" doc:"Whether the node may start and change jobs."`
	Reason string `json:"reason,omitempty" doc:"Why it is not ready."`
}
