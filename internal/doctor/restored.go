package doctor

import (
	"fmt"
	"time"

	"go-crontab/sql"
	"go-crontab/sql/trip"
)

// restored reports the pause that sql.AcceptRestore puts a restored database into.
func restored(x *exam) error {
	stops, err := trip.Stops(x.db.Reader(x.ctx))
	for _, p := range stops {
		if p.Kind == trip.StopCluster && p.Reason == sql.RestoredReason {
			x.found(Warning, Finding{
				Seen: fmt.Sprintf("the cluster is paused since %s: its database was restored",
					p.Since.Time().UTC().Format(time.RFC3339)),
				Why: "Nothing starts until it is resumed. What was due since the backup is " +
					"not started again, since nobody knows whether it was.",
				Fix: "Look at the jobs, then resume the cluster, " +
					"and backfill what is to be started again; see docs/backup.md.",
				Commands: []string{"go-crontab cluster resume"},
			})
		}
	}

	return err
}
