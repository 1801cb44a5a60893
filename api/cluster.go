package api

import (
	"net/http"

	"go-crontab/internal/auth"
	"go-crontab/job"
)

// clusterView is the cluster as its nodes described it with their last heartbeats.
type clusterView struct {
	Now           string        `json:"now" format:"date-time" doc:"The time by MySQL's clock."`
	Node          string        `json:"node" doc:"The node that answers."`
	Version       string        `json:"version" doc:"Its version."`
	Server        string        `json:"server" doc:"The version that the database reports."`
	Schema        int64         `json:"schema" doc:"The version of the schema: the number of the latest migration."`
	SessionExpiry string        `json:"session_expiry,omitempty" doc:"How long a session can stay silent before it counts as lost. Absent before the first node has joined."`
	Sessions      []sessionView `json:"sessions" doc:"The sessions of the nodes, as of their last heartbeats."`
	Folders       []*folderView `json:"folders,omitempty" doc:"The folders of job files that nodes follow. Absent if there are none, and for tokens that are limited to apps."`
}

type sessionView struct {
	ID            string  `json:"id" format:"uuid" doc:"Its id, a UUID."`
	Node          string  `json:"node" doc:"The name of its node."`
	Address       string  `json:"address" doc:"The address at which the node can be reached."`
	PID           int     `json:"pid" doc:"The id of its process."`
	Version       string  `json:"version" doc:"The version of the program."`
	Started       string  `json:"started" format:"date-time" doc:"When it began."`
	BeatAt        string  `json:"beat_at" format:"date-time" doc:"The time of its last heartbeat."`
	BeatAgeMS     int64   `json:"beat_age_ms" doc:"How many milliseconds ago that was."`
	Draining      bool    `json:"draining" doc:"Whether its process is shutting down."`
	Prepared      int     `json:"prepared" doc:"How many prepared runs it holds."`
	Executing     int     `json:"executing" doc:"How many runs it executes."`
	Slots         int     `json:"slots" doc:"How many runs it can execute at once. An HTTP request counts as a sixteenth of one."`
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
