package sql

import (
	"context"
	stdsql "database/sql"
	"encoding/json"
	"fmt"

	"go-crontab/job"

	"github.com/google/uuid"
)

// InsertAudit writes a line of the audit and returns its id. Its transaction is that of the change: either both stand
// or none does.
func (tx *Tx) InsertAudit(e *job.Entry) (int64, error) {
	return tx.Insert("insert audit line", "INSERT INTO audit ("+auditInserted+") VALUES "+Values(1, auditValues), auditArgs(e)...)
}

// Record makes a change together with its line of the audit, until it is known to be applied or refused. fn returns the
// line, or nil when there was nothing to change; who changed it is known from ctx, unless the line says it. The line is what
// an unknown commit is settled by: it stands if and only if the change does.
func (db *DB) Record(ctx context.Context, fn func(*Tx) (*job.Entry, error)) error {
	var line *job.Entry
	return db.TxOnce(ctx, func(tx *Tx) (err error) {
		if line, err = fn(tx); err != nil || line == nil {
			return err
		}
		return tx.Note(line)
	}, func(tx *Tx) (bool, error) {
		if line == nil {
			return true, nil // it wrote nothing
		}
		return tx.Audited(line)
	})
}

// RecordAt is Record for a change that is to know when it is made, by MySQL's clock. So is its line.
func (db *DB) RecordAt(ctx context.Context, fn func(*Tx, job.Micros) (*job.Entry, error)) error {
	return db.Record(ctx, func(tx *Tx) (*job.Entry, error) {
		at, err := tx.Now()
		if err != nil {
			return nil, err
		}
		line, err := fn(tx, at)
		if line != nil {
			line.At = at
		}
		return line, err
	})
}

// Note writes a line of the audit in the transaction of its change, and gives it its id. Without somebody who did it, that is
// known from the context.
func (tx *Tx) Note(line *job.Entry) (err error) {
	if line.Who == "" {
		line.Actor = job.ActorOf(tx.ctx)
	}
	line.ID, err = tx.InsertAudit(line)
	return err
}

const (
	auditInserted = "at, who, origin, action, kind, ref, app, name, reason, was, became"
	auditValues   = 11
)

func auditArgs(e *job.Entry) []any {
	null := func(s string) any {
		if s == "" {
			return nil
		}
		return s
	}
	return []any{int64(e.At), Cut(e.Who, 128), Cut(e.Origin, 64), e.Action, e.Kind, e.Ref, Cut(e.App, 128), Cut(e.Name, 128), Cut(e.Reason, 512), null(e.Was), null(e.Became)}
}

// Audited reports whether a line stands, waiting for whoever is writing it. It settles a change whose commit is unknown.
//
// It writes a line of its own with the same id, which says that the change was not made. If the change stands, or is being
// committed, that is a duplicate key. If it does not, that line stays: nodes may only insert into the audit, and a commit that
// still arrives from another server is refused by it. The id alone is not enough to know a line by, because a server
// that crashed gives ids again that nobody has seen.
func (tx *Tx) Audited(e *job.Entry) (bool, error) {
	if e.ID == 0 {
		return false, nil
	}
	void := *e
	void.Action, void.Reason, void.Was, void.Became = job.ActionVoid, "MySQL did not confirm this change ("+string(e.Action)+"), and it was not made", "", ""

	_, err := tx.Exec("take the id of a line", "INSERT INTO audit (id, "+auditInserted+") VALUES "+Values(1, 1+auditValues), append([]any{e.ID}, auditArgs(&void)...)...)
	if !IsDuplicate(err) {
		return false, err
	}
	n := 0
	err = tx.query("settle audit", func(rows *stdsql.Rows) error { n++; return rows.Scan(new(int64)) },
		"SELECT id FROM audit WHERE id = ? AND at = ? AND kind = ? AND ref = ? AND action = ?", e.ID, int64(e.At), e.Kind, e.Ref, e.Action)
	return n == 1, err
}

const auditColumns = "id, at, who, origin, action, kind, ref, app, name, reason, COALESCE(was, ''), COALESCE(became, '')"

func auditRows(out *[]job.Entry) func(*stdsql.Rows) error {
	return func(rows *stdsql.Rows) error {
		var e job.Entry
		err := scanAudit(rows, &e)
		*out = append(*out, e)
		return err
	}
}

// scanAudit reads a line, after further columns if there are some.
func scanAudit(rows *stdsql.Rows, e *job.Entry, first ...any) error {
	return rows.Scan(append(first, &e.ID, &e.At, &e.Who, &e.Origin, &e.Action, &e.Kind, &e.Ref, &e.App, &e.Name, &e.Reason, &e.Was, &e.Became)...)
}

// AuditOf names whose lines to look for: those of a job by its id, of an app by its name, of the cluster.
type AuditOf struct {
	Kind    job.Kind
	Ref     int64
	App     string // of an app
	Actions []job.Action
}

// AuditBefore returns the last line up to an instant, or ErrNotFound.
func (db *DB) AuditBefore(ctx context.Context, of AuditOf, at job.Micros) (job.Entry, error) {
	return db.auditNear(ctx, of, "at <= ?", "DESC", at)
}

// AuditAfter returns the first line after an instant, or ErrNotFound.
func (db *DB) AuditAfter(ctx context.Context, of AuditOf, at job.Micros) (job.Entry, error) {
	return db.auditNear(ctx, of, "at > ?", "ASC", at)
}

func (db *DB) auditNear(ctx context.Context, of AuditOf, cond, order string, at job.Micros) (job.Entry, error) {
	args := []any{of.Kind, of.Ref, int64(at)}
	cond = "kind = ? AND ref = ? AND " + cond
	if of.Kind == job.KindApp {
		cond, args = cond+" AND app = ?", append(args, of.App)
	}
	actions, args := In(args, of.Actions)
	var out []job.Entry
	err := db.query(ctx, "read audit", auditRows(&out), "SELECT "+auditColumns+" FROM audit FORCE INDEX (ref) WHERE "+cond+" AND action IN "+actions+
		" ORDER BY at "+order+", id "+order+" LIMIT 1", args...)
	return First(out, err)
}

// AuditSession writes that a session is gone, with what its row says, which is about to be deleted. It tells whether there
// is such a row.
func (tx *Tx) AuditSession(id uuid.UUID, by job.Actor, action job.Action, reason string) (bool, error) {
	n, err := tx.Exec("audit session", "INSERT INTO audit (at, who, origin, action, kind, name, reason, was)"+
		" SELECT "+Clock+", ?, ?, ?, ?, node, ?, JSON_OBJECT('session', ?, 'started', "+rfc3339("started")+", 'last_beat', "+rfc3339("beat_at")+") FROM session WHERE id = ?",
		Cut(by.Who, 128), Cut(by.Origin, 64), action, job.KindSession, Cut(reason, 512), id.String(), id[:])
	return n > 0, err
}

// rfc3339 shows an instant of a column as text, in UTC.
func rfc3339(column string) string {
	return "DATE_FORMAT(TIMESTAMPADD(MICROSECOND, " + column + ", '1970-01-01'), '%Y-%m-%dT%H:%i:%s.%fZ')"
}

// Lives returns from when to when sessions lived that are gone, as far as they may tell whether any lived at an
// instant: those that ended last before it and first after it, by the audit, at most so many of each.
func (db *DB) Lives(ctx context.Context, at job.Micros, limit int) ([]job.SessionLife, error) {
	var out []job.SessionLife
	for _, side := range []string{"at <= ? ORDER BY at DESC", "at > ? ORDER BY at ASC"} {
		err := db.query(ctx, "read lives of sessions", func(rows *stdsql.Rows) error {
			var (
				text string
				life job.SessionLife
			)
			if err := rows.Scan(&text); err != nil {
				return err
			}
			if err := json.Unmarshal([]byte(text), &life); err != nil {
				return fmt.Errorf("%q: %w", text, err)
			}
			out = append(out, life)
			return nil
		}, "SELECT was FROM audit FORCE INDEX (ref) WHERE kind = ? AND ref = 0 AND was IS NOT NULL AND "+side+" LIMIT ?", job.KindSession, int64(at), limit)
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}
