package session

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"go-crontab/job"
	"go-crontab/sql"
	"go-crontab/sql/trip"

	"github.com/google/uuid"
)

// buryPause is between two tries to bury a session.
const buryPause = 100 * time.Millisecond

// Bury deletes the row of a session whose process is dead and of which nothing lives, so that its peers need not wait
// until it expires. It tries until that is known to stand, also if a peer did it, or until ctx ends. If we die before
// that, peers bury it.
func Bury(ctx context.Context, db *sql.DB, id uuid.UUID, node string, log *slog.Logger) error {
	by := job.Actor{Who: job.Itself, Origin: node}
	for {
		there := false
		err := db.Tx(ctx, func(tx *sql.Tx) (err error) {
			if err := tx.TakeLocks([]sql.LockID{sql.LockSessions}); err != nil {
				return err
			}
			// A beat, or a commit of the dead process, may still be on its way: whatever it writes has an owner without
			// a row then.
			if there, err = tx.LockSession(id); err != nil || !there {
				return err
			}
			if _, err := tx.AuditSession(id, by, job.ActionReap, "its process died and its guard killed its commands"); err != nil {
				return err
			}
			if err := trip.EndLife(tx, id); err != nil {
				return err
			}
			return tx.EndSession(id)
		})
		if err == nil {
			if there {
				log.Warn("guard: buried the session of a dead node")
			} else {
				log.Info("guard: the session of a dead node was buried already")
			}
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("bury session %s: %w", id, errors.Join(err, context.Cause(ctx)))
		case <-time.After(buryPause): // unknown, too: the row is locked again, whoever is still writing it
		}
	}
}
