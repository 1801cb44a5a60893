package doctor

import (
	"fmt"
	"time"

	"go-crontab/sql"
	"go-crontab/sql/trip"
)

// restored reports a cluster that was paused when its database was restored, and still is. See
// sql.AcceptRestore.
func restored(x *exam) error {
	stops, err := trip.Stops(x.db.Reader(x.ctx))
	for _, p := range stops {
		if p.Kind == trip.StopCluster && p.Reason == sql.RestoredReason {
			x.found(Warning, Finding{
				Seen: fmt.Sprintf("the cluster has been paused since %s, because its database was restored",
					p.Since.Time().UTC().Format(time.RFC3339)),
				Why: "No runs start until it is resumed. Due times since the backup are " +
					"not started again, because they may have run already.",
				Fix: "Check the jobs, then resume the cluster, " +
					"and backfill the due times that must run again; see docs/backup.md.",
				Commands: []string{"go-crontab cluster resume"},
			})
		}
	}

	return err
}
