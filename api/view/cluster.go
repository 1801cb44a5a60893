package view

import (
	"time"

	"go-crontab/job"
)

// Cluster is the state of the cluster. Each session is shown as its last heartbeat reported it.
type Cluster struct {
	Now           time.Time `json:"now" doc:"The time by MySQL's clock."`
	Node          string    `json:"node" doc:"The node that answers."`
	Version       string    `json:"version" doc:"Its version."`
	Server        string    `json:"server" doc:"The version that the database reports."`
	Schema        int64     `json:"schema" doc:"The version of the schema: the number of the latest migration."`
	SessionExpiry string    `json:"session_expiry,omitempty" doc:"How long a session can stay silent before it counts as lost. Absent before the first node has joined."`
	Sessions      []Session `json:"sessions" doc:"The sessions of the nodes, as of their last heartbeats."`
	Backup        *Backup   `json:"backup,omitempty" doc:"The last backup that somebody has told of. Absent if there is none."`
	Folders       []*Folder `json:"folders,omitempty" doc:"The folders of job files that nodes follow. Absent if there are none, and for tokens that are limited to apps."`
}

// Backup is the latest backup of the database that was reported.
type Backup struct {
	At         time.Time `json:"at" doc:"When it was told."`
	NextWithin string    `json:"next_within" doc:"The time in which the next one is expected."`
}

type Session struct {
	ID            string    `json:"id" format:"uuid" doc:"Its id, a UUID."`
	Node          string    `json:"node" doc:"The name of its node."`
	Address       string    `json:"address" doc:"The address at which the node can be reached."`
	PID           int       `json:"pid" doc:"The id of its process."`
	Version       string    `json:"version" doc:"The version of the program."`
	Started       time.Time `json:"started" doc:"When it began."`
	BeatAt        time.Time `json:"beat_at" doc:"The time of its last heartbeat."`
	BeatAgeMS     int64     `json:"beat_age_ms" doc:"How many milliseconds ago that was."`
	Draining      bool      `json:"draining" doc:"Whether its process is shutting down."`
	Prepared      int       `json:"prepared" doc:"How many prepared runs it holds."`
	Executing     int       `json:"executing" doc:"How many runs it executes."`
	Slots         int       `json:"slots" doc:"How many runs it can execute at once. An HTTP request counts as a sixteenth of one."`
	ClockOffsetMS float64   `json:"clock_offset_ms" doc:"MySQL's clock minus the node's, in milliseconds."`
}

// Folder is a folder of job files that nodes follow.
type Folder struct {
	Folder  string        `json:"folder" doc:"Its path, which is the same on all nodes that follow it."`
	Digest  string        `json:"digest,omitempty" doc:"The digest of the state that was last applied. Absent before the first apply."`
	Applied *time.Time    `json:"applied,omitempty" doc:"When it was applied."`
	Node    string        `json:"node,omitempty" doc:"The node that applied it."`
	Nodes   []*FolderNode `json:"nodes" doc:"The nodes that follow it now or did so in the last day."`
}

type FolderNode struct {
	Node   string         `json:"node" doc:"Its name."`
	State  job.FolderWord `json:"state" doc:"How its folder compares to the applied state."`
	Digest string         `json:"digest,omitempty" doc:"The digest of its folder. Absent if the folder cannot be read."`
	Error  string         `json:"error,omitempty" doc:"Why its folder was refused, with the places in the files."`
	Since  time.Time      `json:"since" doc:"When this state began."`
}

type Alive struct {
	Status string `json:"status" enum:"ok" doc:"Always 'ok'."`
}

type Ready struct {
	Ready  bool   `json:"ready" doc:"Whether the node can start and change jobs."`
	Reason string `json:"reason,omitempty" doc:"Why the node is not ready."`
}
