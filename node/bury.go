package node

import (
	"context"

	"go-crontab/internal/guard"
	"go-crontab/session"
	"go-crontab/sql"

	"github.com/google/uuid"
)

// The guard of a dead node calls bury. The guard never reaches main, so bury must need nothing
// from the program that embeds the node.
func init() { guard.OnBury(bury) }

// bury ends the session of a dead node.
func bury(d guard.Dead) error {
	id, err := uuid.Parse(d.Session)
	if err != nil {
		return err
	}

	t, err := session.NewTimings(d.Expiry)
	if err != nil {
		return err
	}

	db, err := sql.Open(d.DSN, t.SQL, 1)
	if err != nil {
		return err
	}
	defer db.Close()

	ctx, cancel := context.WithTimeout(context.Background(), d.Patience)
	defer cancel()
	return session.Bury(ctx, db, id, d.Node, d.Log)
}
