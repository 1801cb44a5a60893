package sql

import (
	"context"
	stdsql "database/sql"
	"encoding/json"
	"fmt"
	"time"

	"go-crontab/internal/failpoint"
	"go-crontab/job"

	"github.com/google/uuid"
)

// Clock is SQL for MySQL's clock, in microseconds. It returns the instant at which its statement
// began, even if the statement then waited for a lock. So beats look older than they are, and this
// error is safe.
const Clock = "CAST(UNIX_TIMESTAMP(NOW(6)) * 1000000 AS SIGNED)"

// Now returns the time of MySQL's clock.
func (tx *Tx) Now() (at job.Micros, err error) {
	err = tx.query("read clock", func(rows *stdsql.Rows) error { return rows.Scan(&at) }, "SELECT "+Clock)
	return at, err
}

// SessionRow is the row of a session: one life of a node process.
type SessionRow struct {
	ID        uuid.UUID
	Node      string
	Address   string
	PID       int
	Version   string
	Started   job.Micros
	Beat      int64
	BeatAt    job.Micros
	Draining  bool
	Prepared  int
	Executing int
	Slots     int
	Offset    int64 // MySQL's clock minus the node's wall clock, microseconds

	Labels     map[string]string // of the node, without the labels of its handlers
	Handlers   []string          // keys of its handlers
	Cordoned   job.Micros        // when its node was cordoned; 0 if it is not
	CordonSeen job.Micros        // the cordon that the session obeys: it has no prepared run and starts nothing

	Zones     string // job.ZoneData of the node; empty in old versions
	ZonesFrom string // source of that data, for people
}

// AllLabels returns the labels of the node and of its handlers.
func (s *SessionRow) AllLabels() map[string]string { return job.WithHandlers(s.Labels, s.Handlers) }

const sessionColumns = "s.id, s.node, s.address, s.pid, s.version, s.started, s.beat, s.beat_at, s.draining, " +
	"s.prepared, s.executing, s.slots, s.clock_offset," +
	" s.labels, s.handlers, s.cordon_seen, IF(n.cordoned, n.since, 0), s.zones, s.zones_from"

func scanSession(rows *stdsql.Rows) (SessionRow, error) {
	var (
		s                SessionRow
		labels, handlers []byte
		cordoned         stdsql.NullInt64
	)
	err := rows.Scan(&s.ID, &s.Node, &s.Address, &s.PID, &s.Version, &s.Started, &s.Beat, &s.BeatAt,
		(*Flag)(&s.Draining), &s.Prepared, &s.Executing, &s.Slots, &s.Offset,
		&labels, &handlers, &s.CordonSeen, &cordoned, &s.Zones, &s.ZonesFrom)
	s.Cordoned = job.Micros(cordoned.Int64)

	// A value that cannot be parsed was written outside the program and counts as empty. The
	// session must still be visible.
	_ = json.Unmarshal(labels, &s.Labels)
	_ = json.Unmarshal(handlers, &s.Handlers)
	return s, err
}

// InsertSession writes the row of a new session.
func (tx *Tx) InsertSession(s SessionRow) error {
	labels, err := json.Marshal(s.Labels)
	if err != nil {
		return fmt.Errorf("insert session: %w", err)
	}

	handlers, err := json.Marshal(s.Handlers)
	if err != nil {
		return fmt.Errorf("insert session: %w", err)
	}

	_, err = tx.Exec("insert session", `
		INSERT INTO session
			(id, node, address, pid, version, slots, labels, handlers, zones, zones_from, started, beat_at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, `+Clock+`, `+Clock+`)`,
		s.ID[:], s.Node, s.Address, s.PID, s.Version, s.Slots, string(labels), string(handlers), s.Zones,
		Cut(s.ZonesFrom, 64))

	return err
}

// LockSession locks a session's row and reports whether it exists. It waits for a transaction that
// is writing the row.
func (tx *Tx) LockSession(id uuid.UUID) (bool, error) {
	n := 0
	err := tx.query("lock session", func(rows *stdsql.Rows) error { n++; return rows.Scan(new(int64)) },
		"SELECT beat FROM session WHERE id = ? FOR UPDATE", id[:])
	return n == 1, err
}

// Namesake is a session with a given node name.
type Namesake struct {
	ID       uuid.UUID
	Node     string
	Address  string
	PID      int
	Beat     int64
	Draining bool
	Age      time.Duration // since its last beat, by MySQL's clock
}

// SessionsOf lists the sessions with a node name. Call JoinExpiry first in the same transaction:
// its lock prevents others from adding sessions.
func (tx *Tx) SessionsOf(node string) ([]Namesake, error) {
	// beat_at may hold any number, if it was changed outside the program.
	const statement = `
		SELECT id, node, address, pid, beat, draining,
		       LEAST(GREATEST(` + Clock + ` - GREATEST(beat_at, 0), 0), 1000000000000000)
		FROM session
		WHERE node = ?`
	var out []Namesake
	err := tx.query("look for the node's name", func(rows *stdsql.Rows) error {
		var n Namesake
		err := rows.Scan(&n.ID, &n.Node, &n.Address, &n.PID, &n.Beat, (*Flag)(&n.Draining), &n.Age)
		n.Age *= time.Microsecond
		out = append(out, n)
		return err
	}, statement, node)

	return out, err
}

// DeleteSession buries a session: it deletes the session's row if the beat counter is still `beat`.
// It reports whether it deleted the row.
func (tx *Tx) DeleteSession(id uuid.UUID, beat int64) (bool, error) {
	n, err := tx.Exec("delete session", "DELETE FROM session WHERE id = ? AND beat = ?", id[:], beat)
	return n == 1, err
}

// EndSession deletes a session's own row.
func (tx *Tx) EndSession(id uuid.UUID) error {
	_, err := tx.Exec("end session", "DELETE FROM session WHERE id = ?", id[:])
	return err
}

// Sessions lists all sessions by id.
func (db *DB) Sessions(ctx context.Context) ([]SessionRow, error) {
	return Select(db.Reader(ctx), "list sessions", scanSession, `
		SELECT `+sessionColumns+`
		FROM session s
		LEFT JOIN node n ON n.name = s.node
		ORDER BY s.id`)
}

// Vitals are the facts about a node that its beat reports.
type Vitals struct {
	Prepared, Executing int
	Draining            bool
	CordonSeen          job.Micros // see SessionRow
	Offset              time.Duration
}

// Pulse is a separate connection for beats. So no exhausted pool, no lock and no long statement can
// delay a beat. One goroutine uses it.
type Pulse struct{ db *DB }

// OpenPulse prepares the connection. The first beat opens it.
func OpenPulse(dsn string, t Timeouts) (*Pulse, error) {
	db, err := openPool(dsn, t, 1, false) // not fresh: a beat must not wait for other members
	if err != nil {
		return nil, err
	}
	return &Pulse{db}, nil
}

// Beat raises the session's counter in one statement. It returns false if the row is gone, because
// the session was buried. After an error the beat may or may not have arrived.
func (p *Pulse) Beat(ctx context.Context, id uuid.UUID, v Vitals) (bool, error) {
	failpoint.Here("before", "beat")
	r, err := p.db.db.ExecContext(ctx, "UPDATE session SET "+Next("beat")+", beat_at = "+Clock+
		", prepared = ?, executing = ?, draining = ?, cordon_seen = ?, clock_offset = ? WHERE id = ?",
		v.Prepared, v.Executing, v.Draining, int64(v.CordonSeen), v.Offset.Microseconds(), id[:])
	if p.db.meter.sent(err) != nil {
		return false, fmt.Errorf("beat: %w", err)
	}

	failpoint.Here("behind", "beat")
	n, err := r.RowsAffected()
	return n == 1, err
}

// Clock reads MySQL's clock. The caller's own times before and after the call show how inexact the
// reading can be.
func (p *Pulse) Clock(ctx context.Context) (at job.Micros, err error) {
	err = p.db.db.QueryRowContext(ctx, "SELECT "+Clock).Scan(&at)
	if p.db.meter.sent(err) != nil {
		return 0, fmt.Errorf("read clock: %w", err)
	}
	return at, nil
}

// Close closes the connection.
func (p *Pulse) Close() error { return p.db.Close() }
