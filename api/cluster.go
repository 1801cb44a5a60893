package api

import (
	"net/http"

	"go-crontab/api/view"
	"go-crontab/internal/auth"
	"go-crontab/job"
)

// cluster: GET /api/v1/cluster
func (s *Server) cluster(w http.ResponseWriter, r *http.Request) error {
	now, err := s.now()
	if err != nil {
		return err
	}

	ctx, db := r.Context(), s.cfg.DB
	v := view.Cluster{
		Now: job.MicrosOf(now).Time(), Node: s.cfg.Node, Version: s.cfg.Version, Sessions: []view.Session{},
	}
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
		v.SessionExpiry = job.Duration(expiry).Text()
	}

	backup, err := db.LastBackup(ctx)
	if err != nil {
		return err
	}
	if backup.At != 0 {
		v.Backup = viewOfBackup(backup)
	}

	sessions, err := db.Sessions(ctx)
	if err != nil {
		return err
	}

	at := job.MicrosOf(s.cfg.Now())
	for _, x := range sessions {
		v.Sessions = append(v.Sessions, view.Session{
			ID: x.ID.String(), Node: x.Node, Address: x.Address, PID: x.PID, Version: x.Version,
			Started: x.Started.Time(),
			BeatAt:  x.BeatAt.Time(), BeatAgeMS: max(0, at.Sub(x.BeatAt).Milliseconds()), Draining: x.Draining,
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
