package view

import (
	"time"
)

// Handler is a handler as clients see it.
type Handler struct {
	Key      string     `json:"handler" doc:"Its key."`
	Nodes    []string   `json:"nodes" doc:"The nodes that have registered it."`
	Jobs     int        `json:"jobs" doc:"How many jobs use it."`
	Disabled bool       `json:"disabled" doc:"Whether it is disabled."`
	Reason   string     `json:"reason,omitempty" doc:"The reason that was given."`
	By       string     `json:"by,omitempty" doc:"Who disabled it."`
	Since    *time.Time `json:"since,omitempty" doc:"When it was disabled."`
}
