package session

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"go-crontab/internal/boottime"
	"go-crontab/sql"

	"github.com/google/uuid"
)

// errNameHeld means that a session with this node's name may still be alive. The session's next
// beats decide.
var errNameHeld = errors.New("another session has this node's name")

const (
	nameLook    = 200 * time.Millisecond // between two looks at the sessions with this node's name
	beatsToLive = 2                      // new beats that prove a session alive: one may come from a dead process
	beatsToDie  = 3                      // beats a session may miss before its name is free
)

// names watches the other sessions with a node's name while that node waits to join.
//
// A namesake that beats is a second live node, and the join is refused. A silent namesake counts
// as dead. Its name is free after a few missed beats, long before its session expires, so a node
// restarts quickly after a crash. Usually the guard of the killed node has already deleted the
// session.
type names struct {
	// sessions that this process has lost, or of which it does not know whether the insert was
	// applied
	own  []uuid.UUID
	seen map[uuid.UUID]namesake
}

// namesake is another session with the node's name, as observed so far.
type namesake struct {
	observation
	beats int // new beats since the first look
}

// check decides whether this node may join: nil, errNameHeld or sql.ErrRefuseJoin. The caller's
// transaction holds the lock that every join takes. So when two nodes join at once, the second one
// sees the session of the first.
func (w *names) check(tx *sql.Tx, node string, t Timings) error {
	if node == "" {
		return nil
	}

	rows, err := tx.SessionsOf(node)
	if err != nil {
		return err
	}

	now := boottime.Now()
	for i := range rows {
		if slices.Contains(w.own, rows[i].ID) {
			continue
		}
		if err := w.look(&rows[i], now).judge(&rows[i], now, t); err != nil {
			return err
		}
	}

	return nil
}

// look records the beat that a session shows now, and returns the verdict on the session.
func (w *names) look(row *sql.Namesake, now time.Duration) namesake {
	n, known := w.seen[row.ID]
	if !known {
		n.observation = observation{row.Beat, now}
	}

	if n.beat != row.Beat {
		n.observation = observation{row.Beat, now}
		n.beats++
	}

	w.seen[row.ID] = n
	return n
}

// judge decides whether another node may take the session's name.
func (n namesake) judge(row *sql.Namesake, now time.Duration, t Timings) error {
	silent := now - n.since
	switch {
	case n.beats >= beatsToLive && !row.Draining:
		return fmt.Errorf("%w: another live node is named %q (%s); "+
			"give this node its own name (serve --node, GOCRONTAB_NODE; in a Go program Config.Name)",
			sql.ErrRefuseJoin, row.Node, whereabouts(row))
	case silent > beatsToDie*t.Beat, row.Age > t.Stale:
		return nil
	}

	return fmt.Errorf("%w: %s", errNameHeld, whereabouts(row))
}

func whereabouts(row *sql.Namesake) string {
	text := fmt.Sprintf("pid %d, session %s", row.PID, row.ID)
	if row.Address != "" {
		text = "address " + row.Address + ", " + text
	}
	return text
}
