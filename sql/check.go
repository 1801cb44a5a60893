package sql

import (
	"context"
	stdsql "database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
)

// ErrRefuseJoin marks an error that only an operator can remove. Waiting is useless.
var ErrRefuseJoin = errors.New("this node cannot join")

func refuse(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrRefuseJoin, fmt.Sprintf(format, args...))
}

// MinPacket is the smallest allowed max_allowed_packet, in bytes. A batch of output fits into it,
// even if quoting doubles each byte.
const MinPacket = 8 << 20

// IsOff reports whether a switch of the server is off. In MariaDB 12, read_only is a word that may
// have more than two values.
func IsOff(value string) bool { return value == "0" || strings.EqualFold(value, "OFF") }

// Check verifies everything on which the protocol depends, before a node joins. An ErrRefuseJoin
// says what is wrong and what to do. After any other error the caller waits and retries: MySQL is
// unreachable or read-only, or the tables do not exist yet.
func (db *DB) Check(ctx context.Context) error {
	var (
		version  string
		readOnly string
		lockWait int64
		idle     int64
		packet   int64
	)
	row := db.db.QueryRowContext(ctx, `
		SELECT VERSION(), @@GLOBAL.read_only, @@SESSION.innodb_lock_wait_timeout, @@SESSION.wait_timeout,
			@@max_allowed_packet`)
	if err := row.Scan(&version, &readOnly, &lockWait, &idle, &packet); err != nil {
		return fmt.Errorf("check server: %w", err)
	}

	if err := CheckVersion(version); err != nil {
		return err
	}

	if !IsOff(readOnly) { // true for a moment in each failover
		return fmt.Errorf(
			"the server is read-only (@@read_only=%s); waiting for the primary; GOCRONTAB_DSN must point to it",
			readOnly)
	}

	if d := time.Duration(lockWait) * time.Second; d >= db.timeouts.Read {
		return refuse("innodb_lock_wait_timeout is %s, want less than the read timeout %s", d, db.timeouts.Read)
	}
	if d := time.Duration(idle) * time.Second; d > db.timeouts.Idle {
		return refuse("wait_timeout is %s, want at most %s", d, db.timeouts.Idle)
	}

	if packet < MinPacket {
		return refuse(
			"max_allowed_packet is %d bytes, want at least %d; raise it on the server", packet, int64(MinPacket))
	}

	if err := db.checkSchema(ctx); err != nil {
		return err
	}
	if err := db.checkTables(ctx); err != nil {
		return err
	}
	return db.checkLocks(ctx)
}

// tables are the tables of the newest migration.
var tables = []string{
	"alert", "alert_channel", "alert_rule", "alert_silence", "alert_streak", "alert_work", "api_token", "app",
	"app_limit", "app_output", "app_start", "arrival", "audit", "audit_chain", "backfill", "calendar", "chore", "chunk",
	"delivery", "ending", "figure", "folder", "folder_node", "grp", "job", "job_part", "job_pause", "job_ref",
	"job_term", "job_version", "life", "locks", "login", "node", "node_note", "notable", "output", "output_part",
	"request", "retention", "run", "secret", "session", "setting", "stop",
}

// checkTables looks for missing tables. They may have been dropped, or a restore has not created
// them yet. No migration creates them again.
func (db *DB) checkTables(ctx context.Context) error {
	missing := map[string]bool{}
	for _, t := range tables {
		missing[t] = true
	}

	err := db.query(ctx, "check tables", func(rows *stdsql.Rows) error {
		var name string
		err := rows.Scan(&name)
		delete(missing, name)
		return err
	}, "SELECT table_name FROM information_schema.tables WHERE table_schema = DATABASE()")
	if err == nil && len(missing) > 0 {
		err = fmt.Errorf("the schema lacks the tables %s; waiting until a backup is restored",
			strings.Join(slices.Sorted(maps.Keys(missing)), ", "))
	}

	return err
}

// CheckVersion accepts MySQL 8.0, MariaDB 10.6 and newer: the first versions with JSON_TABLE.
func CheckVersion(version string) error {
	least, product := [2]int{8, 0}, "MySQL"
	v := version
	if strings.Contains(strings.ToLower(version), "mariadb") {
		least, product = [2]int{10, 6}, "MariaDB"
		v = strings.TrimPrefix(v, "5.5.5-") // older replication clients needed this prefix
	}

	parts := strings.SplitN(v, ".", 3)
	if len(parts) < 2 {
		return refuse("cannot read the server's version %q", version)
	}

	major, err1 := strconv.Atoi(parts[0])
	minor, err2 := strconv.Atoi(parts[1])
	if err1 != nil || err2 != nil {
		return refuse("cannot read the server's version %q", version)
	}
	if major < least[0] || major == least[0] && minor < least[1] {
		return refuse("the server is %s %s, want %d.%d or newer", product, version, least[0], least[1])
	}

	return nil
}

func (db *DB) checkLocks(ctx context.Context) error {
	missing, err := db.MissingLocks(ctx)
	if err != nil {
		return fmt.Errorf("check lock rows: %w", err)
	}

	if len(missing) > 0 {
		return refuse(
			"the table locks lacks the row %s; restore it: go-crontab migrate",
			strings.Join(missing, ", "))
	}

	return nil
}

// JoinExpiry agrees with the cluster on the session expiry. If nodes had different values, they
// would bury each other, that is, delete each other's session rows. The first node of an empty
// cluster decides, so call JoinExpiry in the transaction that inserts the session.
//
// If all nodes of a cluster die at once, their session rows remain, because no node is left to bury
// them. MySQL's clock alone does not prove that such a session is dead: the clock may have been
// set, or MySQL may have been unreachable for a while. So silent returns how long a session has
// shown the same beat, by the caller's own clock.
func (tx *Tx) JoinExpiry(expiry time.Duration, silent func(id uuid.UUID, beat int64) time.Duration) error {
	// Without the lock, two first nodes could decide differently.
	if err := tx.TakeLocks([]LockID{LockSessions}); err != nil {
		return err
	}

	theirs := time.Duration(0)
	err := tx.query("read session expiry", func(rows *stdsql.Rows) error {
		err := rows.Scan(&theirs)
		theirs *= time.Millisecond
		return err
	}, "SELECT CAST(value AS SIGNED) FROM setting WHERE name = 'session_expiry_ms'")
	if err != nil || theirs == expiry {
		return err
	}

	living, waiting := 0, 0
	err = tx.query("look for nodes", func(rows *stdsql.Rows) error {
		var (
			id   uuid.UUID
			beat int64
			far  time.Duration // distance of the last beat from MySQL's clock
		)
		if err := rows.Scan(&id, &beat, &far); err != nil {
			return err
		}

		switch quiet := silent(id, beat); {
		case far*time.Microsecond <= theirs:
			living++
		case quiet <= theirs:
			waiting++
		}

		return nil
	}, `
		SELECT id, beat, LEAST(ABS(`+Clock+` - GREATEST(beat_at, 0)), 1000000000000000)
		FROM session`) // bounded: beat_at may hold any number, if changed outside the program

	switch {
	case err != nil:
		return err
	case theirs == 0: // never set, or deleted outside the program
	case living > 0:
		return refuse(
			"this node's session expiry is %s, but the cluster's is %s (running nodes: %d); "+
				"start it with --session-expiry=%s, or stop all nodes to change it",
			expiry, theirs, living, theirs)
	case waiting > 0:
		return fmt.Errorf(
			"this node's session expiry is %s, but the cluster's is %s; waiting %s to see whether one of its last "+
				"%d nodes is still running", expiry, theirs, theirs, waiting)
	}

	_, err = tx.Exec("write session expiry", `
		INSERT INTO setting (name, value)
		VALUES ('session_expiry_ms', ?)
		ON DUPLICATE KEY UPDATE value = VALUES(value)`,
		strconv.FormatInt(expiry.Milliseconds(), 10))

	return err
}

// SessionExpiry returns the session expiry on which the nodes agree. Before the first node has
// joined, it returns zero.
func (db *DB) SessionExpiry(ctx context.Context) (time.Duration, error) {
	var ms int64
	err := db.db.QueryRowContext(ctx, `
		SELECT CAST(value AS SIGNED)
		FROM setting
		WHERE name = 'session_expiry_ms'`).Scan(&ms)
	if noRows(err) {
		return 0, nil
	}
	return time.Duration(ms) * time.Millisecond, err
}

// ServerVersion returns the server's VERSION().
func (db *DB) ServerVersion(ctx context.Context) (string, error) {
	var v string
	err := db.db.QueryRowContext(ctx, "SELECT VERSION()").Scan(&v)
	return v, err
}
