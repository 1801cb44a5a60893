package api

import (
	"net/http"

	"go-crontab/internal/auth"
	"go-crontab/job"
)

// clusterView is the cluster as its nodes described it with their last heartbeats.
type clusterView struct {
	Now           string        `json:"now" format:"date-time" doc:"What MySQL's clock says."`
	Node          string        `json:"node" doc:"The node that answers."`
	Version       string        `json:"version" doc:"Its version."`
	Server        string        `json:"server" doc:"What the database says it is."`
	Schema        int64         `json:"schema" doc:"The version of the schema: that of the latest migration."`
	SessionExpiry string        `json:"session_expiry,omitempty" doc:"After how long without a sign a session is buried. Absent before the first node has said it."`
	Sessions      []sessionView `json:"sessions" doc:"What the nodes told of themselves with their last beats."`
	Folders       []*folderView `json:"folders,omitempty" doc:"The folders with files of jobs that nodes follow. Absent when there is none, and for who is limited to apps."`
}

type sessionView struct {
	ID            string  `json:"id" format:"uuid" doc:"Its id, a UUID."`
	Node          string  `json:"node" doc:"The name of its node."`
	Address       string  `json:"address" doc:"Where the node says that it can be reached."`
	PID           int     `json:"pid" doc:"The id of its process."`
	Version       string  `json:"version" doc:"The version of the program."`
	Started       string  `json:"started" format:"date-time" doc:"When it began."`
	BeatAt        string  `json:"beat_at" format:"date-time" doc:"When it was last heard of."`
	BeatAgeMS     int64   `json:"beat_age_ms" doc:"How many milliseconds ago that was."`
	Draining      bool    `json:"draining" doc:"Whether its process is about to end."`
	Prepared      int     `json:"prepared" doc:"How many due times it holds ready."`
	Executing     int     `json:"executing" doc:"How many runs it executes."`
	Slots         int     `json:"slots" doc:"How many it may execute at once; an HTTP request counts as a sixteenth of one."`
	ClockOffsetMS float64 `json:"clock_offset_ms" doc:"MySQL's clock minus the node's, in milliseconds."`
}

// cluster: GET /api/v1/cluster
func (s *Server) cluster(w http.ResponseWriter, r *http.Request) error {
	now, err := s.now()
	if err != nil {
		return err
	}

	ctx, db := r.Context(), s.cfg.DB
	v := clusterView{Now: stamp(job.MicrosOf(now)), Node: s.cfg.Node, Version: s.cfg.Version, Sessions: []sessionView{}}
	if v.Server, err = db.ServerVersion(ctx); err != nil {
		return err
	}
	if v.Schema, err = db.SchemaVersion(ctx); err != nil {
		return err
	}

	expiry, err := db.SessionExpiry(ctx)
	if err != nil {
		return err
	}
	if expiry != 0 {
		v.SessionExpiry = job.Duration(expiry).String()
	}

	sessions, err := db.Sessions(ctx)
	if err != nil {
		return err
	}

	at := job.MicrosOf(s.cfg.Now())
	for _, x := range sessions {
		v.Sessions = append(v.Sessions, sessionView{
			ID: x.ID.String(), Node: x.Node, Address: x.Address, PID: x.PID, Version: x.Version,
			Started: stamp(x.Started),
			BeatAt:  stamp(x.BeatAt), BeatAgeMS: max(0, at.Sub(x.BeatAt).Milliseconds()), Draining: x.Draining,
			Prepared: x.Prepared, Executing: x.Executing, Slots: x.Slots, ClockOffsetMS: float64(x.Offset) / 1000,
		})
	}

	// Errors of folders name jobs of any app, so callers limited to apps do not see folders.
	if auth.Of(ctx).Sees() == nil {
		if v.Folders, err = s.folders(ctx); err != nil {
			return err
		}
	}

	return answer(w, http.StatusOK, v)
}
