package api

import (
	"go-crontab/auth"
)

// access is who may use a route. Its zero value is for those alone who may everything.
type access struct {
	open bool // for all
	role auth.Role
	over extent
}

// open is for all, also for those of whom nobody knows who they are.
var open = access{open: true}

// may is for those who have a role, or a higher one, where the extent says.
func may(role auth.Role, over extent) access { return access{role: role, over: over} }

// The roles, as the table says them.
const (
	viewer   = auth.Viewer
	operator = auth.Operator
	admin    = auth.Admin
)

// extent is what a route is about: what of it those get whose role is limited to some apps.
type extent int

const (
	whole      extent = iota // the cluster, or what belongs to no app: nothing
	shared                   // what belongs to no app and may be read by all who may read anything
	filtered                 // a list: its handler leaves out what is of other apps
	inBody                   // an app that the body names: the handler checks it
	ofApp                    // {app} is one
	ofJob                    // {id} is that of a job
	ofRun                    // of a run
	ofBackfill               // of a backfill
)
