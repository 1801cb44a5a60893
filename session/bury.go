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

// buryPause is the pause between two attempts to bury a session.
const buryPause = 100 * time.Millisecond

// Bury deletes the row of a session whose process and commands are all dead, so that peers need
// not wait until the session expires. It tries until the row is known to be gone (a peer may have
// deleted it), or until ctx ends. If we die first, a peer buries the session.
func Bury(ctx context.Context, db *sql.DB, id uuid.UUID, node string, log *slog.Logger) error {
	by := job.Actor{Who: job.Itself, Origin: node}
	for {
		there := false
		err := db.Tx(ctx, func(tx *sql.Tx) (err error) {
			if err := tx.TakeLocks([]sql.LockID{sql.LockSessions}); err != nil {
				return err
			}

			// A beat or a commit of the dead process may still arrive. It does no harm: everything
			// that it writes has an owner without a row.
			if there, err = tx.LockSession(id); err != nil || !there {
				return err
			}

			if _, err := auditSession(tx, id, by, job.ActionReap,
				"its process died and its guard killed its commands"); err != nil {
				return err
			}

			if err := trip.EndLife(tx, id); err != nil {
				return err
			}
			return tx.EndSession(id)
		})
		if err == nil {
			if there {
				log.Warn("guard: ended the session of the dead node")
			} else {
				log.Info("guard: the session of the dead node was already ended")
			}
			return nil
		}

		select {
		case <-ctx.Done():
			return fmt.Errorf("bury session %s: %w", id, errors.Join(err, context.Cause(ctx)))
		// also after an unknown commit: the next try waits for that commit, because it locks the
		// row
		case <-time.After(buryPause):
		}
	}
}

// auditSession writes an audit line about the end of a session, and copies the session's row into
// the line before the row is deleted. It reports whether the row exists.
func auditSession(tx *sql.Tx, id uuid.UUID, by job.Actor, action job.Action, reason string) (bool, error) {
	n, err := tx.Exec("audit session", `
		INSERT INTO audit (at, who, origin, action, kind, name, reason, was)
		SELECT `+sql.Clock+`, ?, ?, ?, ?, node, ?, JSON_OBJECT(
			'session', ?, 'started', `+rfc3339("started")+`, 'last_beat', `+rfc3339("beat_at")+`)
		FROM session
		WHERE id = ?`,
		sql.Cut(by.Who, 128), sql.Cut(by.Origin, 64), action, job.KindSession, sql.Cut(reason, 512), id.String(), id[:])
	return n > 0, err
}

// rfc3339 returns SQL that formats an instant of a column, in UTC.
func rfc3339(column string) string {
	return "DATE_FORMAT(TIMESTAMPADD(MICROSECOND, " + column + ", '1970-01-01'), '%Y-%m-%dT%H:%i:%s.%fZ')"
}
