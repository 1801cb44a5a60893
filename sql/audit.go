package sql

import (
	"context"
	stdsql "database/sql"

	"go-crontab/job"
)

// InsertAudit writes a line of the audit and returns its id. Its transaction is that of the change:
// either both stand or none does.
func (tx *Tx) InsertAudit(e *job.Entry) (int64, error) {
	return tx.Insert("insert audit line", `
		INSERT INTO audit (`+auditInserted+`)
		VALUES `+Values(1, auditValues), auditArgs(e)...)
}

// Record makes a change together with its line of the audit, until it is known to be applied or
// refused. fn returns the line, or nil when there was nothing to change; who changed it is known
// from ctx, unless the line says it. The line is what an unknown commit is settled by: it stands if
// and only if the change does.
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

// RecordAt is Record for a change that is to know when it is made, by MySQL's clock. So is its
// line.
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

// Note writes a line of the audit in the transaction of its change, and gives it its id. Without
// somebody who did it, that is known from the context.
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

	return []any{
		int64(e.At), Cut(e.Who, 128), Cut(e.Origin, 64), e.Action, e.Kind, e.Ref, Cut(e.App, 128), Cut(e.Name, 128),
		Cut(e.Reason, 512), null(e.Was), null(e.Became),
	}
}

// Audited reports whether a line stands, waiting for whoever is writing it. It settles a change
// whose commit is unknown.
//
// It writes a line of its own with the same id, which says that the change was not made. If the
// change stands, or is being committed, that is a duplicate key. If it does not, that line stays:
// nodes may only insert into the audit, and a commit that still arrives from another server is
// refused by it. The id alone is not enough to know a line by, because a server that crashed gives
// ids again that nobody has seen.
func (tx *Tx) Audited(e *job.Entry) (bool, error) {
	if e.ID == 0 {
		return false, nil
	}

	void := *e
	void.Action, void.Reason, void.Was, void.Became = job.ActionVoid, "MySQL did not confirm this change ("+
		string(e.Action)+"), and it was not made", "", ""

	_, err := tx.Exec("take the id of a line", `
		INSERT INTO audit (id, `+auditInserted+`)
		VALUES `+Values(1, 1+auditValues), append([]any{e.ID}, auditArgs(&void)...)...)
	if !IsDuplicate(err) {
		return false, err
	}

	n := 0
	err = tx.query("settle audit", func(rows *stdsql.Rows) error { n++; return rows.Scan(new(int64)) }, `
		SELECT id
		FROM audit
		WHERE id = ? AND at = ? AND kind = ? AND ref = ? AND action = ?`, e.ID, int64(e.At), e.Kind, e.Ref, e.Action)

	return n == 1, err
}

const AuditColumns = "id, at, who, origin, action, kind, ref, app, name, reason, COALESCE(was, ''), " +
	"COALESCE(became, '')"

func ScanEntry(rows *stdsql.Rows) (e job.Entry, err error) {
	err = ScanAudit(rows, &e)
	return e, err
}

// scanAudit reads a line, after further columns if there are some.
func ScanAudit(rows *stdsql.Rows, e *job.Entry, first ...any) error {
	return rows.Scan(append(first, &e.ID, &e.At, &e.Who, &e.Origin, &e.Action, &e.Kind, &e.Ref, &e.App, &e.Name,
		&e.Reason, &e.Was, &e.Became)...)
}

// maxAuditBytes is how much one statement writes of the audit, give or take a line.
const maxAuditBytes = 512 << 10

// InsertAudits writes lines of the audit whose ids nobody needs.
func (tx *Tx) InsertAudits(lines []*job.Entry) error {
	var args []any
	size := 0
	flush := func() error {
		if len(args) == 0 {
			return nil
		}
		_, err := tx.Exec("insert audit", `
			INSERT INTO audit (`+auditInserted+`)
			VALUES `+Values(len(args)/auditValues, auditValues), args...)
		args, size = nil, 0
		return err
	}

	for _, e := range lines {
		args, size = append(args, auditArgs(e)...), size+len(e.Was)+len(e.Became)
		if size >= maxAuditBytes || len(args) >= 500*auditValues {
			if err := flush(); err != nil {
				return err
			}
		}
	}

	return flush()
}
