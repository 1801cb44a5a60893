package api

import (
	"net/http"
	"time"

	"go-crontab/api/view"
	"go-crontab/job"
	"go-crontab/job/problem"
	"go-crontab/sql"
)

// The next backup is expected within a time between these bounds.
const (
	soonestBackup = time.Minute
	latestBackup  = 366 * 24 * time.Hour
)

// putBackup: PUT /api/v1/cluster/backup
func (s *Server) putBackup(w http.ResponseWriter, r *http.Request) error {
	body, err := readObject(r)
	if err != nil {
		return err
	}

	f := newFields(body)
	var within job.Duration
	f.duration("next_within", &within)
	if err := f.done(); err != nil {
		return err
	}

	switch d := time.Duration(within); {
	case body["next_within"] == nil:
		return job.Wrong("next_within",
			problem.Missing.Advise(`give the time in which the next backup is expected, such as "26h"`))
	case d < soonestBackup || d > latestBackup:
		return job.Wrong("next_within", problem.NotBetween, within, job.Duration(soonestBackup),
			job.Duration(latestBackup))
	}

	b, err := s.cfg.DB.BackupDone(r.Context(), time.Duration(within))
	if err != nil {
		return lookAt(err, "GET /api/v1/cluster shows the last backup. You can safely repeat the request.")
	}
	return answer(w, http.StatusOK, viewOfBackup(b))
}

func viewOfBackup(b sql.Backup) *view.Backup {
	return &view.Backup{At: b.At.Time(), NextWithin: job.Duration(b.Within).Text()}
}
