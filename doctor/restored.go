package doctor

import (
	"fmt"
	"time"

	"go-crontab/sql"
)

// restored finds the pause in which a restored database is left, see sql.AcceptRestore.
func restored(x *exam) error {
	pauses, err := x.db.Pauses(x.ctx)
	for _, p := range pauses {
		if p.App == "" && p.Reason == sql.RestoredReason {
			x.found(Warning, Finding{
				Seen: fmt.Sprintf("the cluster is paused since %s: its database was restored", p.Since.Time().UTC().Format(time.RFC3339)),
				Why:  "What was done after the backup is not known any more: when the cluster is resumed, due times since then are misfires, and what they start may have been started before.",
				Fix:  "Decide which jobs may catch up; docs/backup.md says how. Then resume the cluster.", Commands: []string{"go-crontab cluster resume"},
			})
		}
	}
	return err
}
