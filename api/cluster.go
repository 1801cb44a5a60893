package api

import (
	"net/http"

	"go-crontab/job"
)

// clusterView is what the nodes told about themselves with their last beats.
type clusterView struct {
	Now           string        `json:"now"`
	Node          string        `json:"node"` // the one that answers
	Version       string        `json:"version"`
	Server        string        `json:"server"`
	Buckets       int           `json:"buckets"`
	SessionExpiry string        `json:"session_expiry,omitempty"`
	Sessions      []sessionView `json:"sessions"`
}

type sessionView struct {
	ID            string  `json:"id"`
	Node          string  `json:"node"`
	Address       string  `json:"address"`
	PID           int     `json:"pid"`
	Version       string  `json:"version"`
	Started       string  `json:"started"`
	BeatAt        string  `json:"beat_at"`
	BeatAgeMS     int64   `json:"beat_age_ms"`
	Draining      bool    `json:"draining"`
	Prepared      int     `json:"prepared"`
	Executing     int     `json:"executing"`
	Slots         int     `json:"slots"`
	ClockOffsetMS float64 `json:"clock_offset_ms"` // MySQL's clock minus the node's
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
	if v.Buckets, err = db.Buckets(ctx); err != nil {
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
			ID: x.ID.String(), Node: x.Node, Address: x.Address, PID: x.PID, Version: x.Version, Started: stamp(x.Started),
			BeatAt: stamp(x.BeatAt), BeatAgeMS: max(0, at.Sub(x.BeatAt).Milliseconds()), Draining: x.Draining,
			Prepared: x.Prepared, Executing: x.Executing, Slots: x.Slots, ClockOffsetMS: float64(x.Offset) / 1000,
		})
	}
	return answer(w, http.StatusOK, v)
}
