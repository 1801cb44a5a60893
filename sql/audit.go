package sql

import (
	"context"
	stdsql "database/sql"

	"go-crontab/job"
)

// InsertAudit writes an audit line and returns its id. Call it in the transaction of the change, so
// that both are committed or neither.
func (tx *Tx) InsertAudit(e *job.Entry) (int64, error) {
	return tx.Insert("insert audit line", `
		INSERT INTO audit (`+auditInserted+`)
		VALUES `+Values(1, auditValues), auditArgs(e)...)
}

// Record makes a change and writes its audit line in one transaction. It tries until the change is
// known to be applied or refused. fn makes the change and returns the line. It returns nil if there
// was nothing to change. The actor comes from ctx unless the line names one. The line settles an
// unknown commit: it exists if and only if the change was made.
func (db *DB) Record(ctx context.Context, fn func(*Tx) (*job.Entry, error)) error {
	var line *job.Entry
	return db.TxOnce(ctx, func(tx *Tx) (err error) {
		if line, err = fn(tx); err != nil || line == nil {
			return err
		}
		return tx.Note(line)
	}, func(tx *Tx) (bool, error) {
		if line == nil {
			return true, nil // fn wrote nothing
		}
		return tx.Audited(line)
	})
}

// RecordAt is like Record, for a change that needs the time at which it is made. fn gets this time
// from MySQL's clock, and the audit line has the same time.
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

// Note writes an audit line in the transaction of its change, and sets the line's id. The actor
// comes from the context unless the line names one.
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

// Audited reports whether an audit line exists. It waits for a transaction that is writing the
// line. So it can settle a change whose commit is unknown.
//
// Audited inserts a line with the same id, which says that the change was not made. If the change
// is committed, or about to be, the insert fails with a duplicate key. Otherwise the new line
// stays, because nodes may not delete audit lines. If the lost commit still arrives through another
// server, the new line makes that commit fail.
//
// The id alone does not identify a line, because a server that crashed reuses ids that no reader
// has seen.
func (tx *Tx) Audited(e *job.Entry) (bool, error) {
	if e.ID == 0 {
		return false, nil
	}

	void := *e
	void.Action, void.Reason, void.Was, void.Became = job.ActionVoid, "MySQL did not confirm this change ("+
		string(e.Action)+"), and it was not applied", "", ""

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

// AuditColumns are the columns that ScanEntry and ScanAudit read.
const AuditColumns = "id, at, who, origin, action, kind, ref, app, name, reason, COALESCE(was, ''), " +
	"COALESCE(became, '')"

// ScanEntry reads an audit line.
func ScanEntry(rows *stdsql.Rows) (e job.Entry, err error) {
	err = ScanAudit(rows, &e)
	return e, err
}

// ScanAudit reads an audit line. first takes any columns that come before the line's own columns.
func ScanAudit(rows *stdsql.Rows, e *job.Entry, first ...any) error {
	return rows.Scan(append(first, &e.ID, &e.At, &e.Who, &e.Origin, &e.Action, &e.Kind, &e.Ref, &e.App, &e.Name,
		&e.Reason, &e.Was, &e.Became)...)
}

// maxAuditBytes bounds the bytes of old and new values that one statement inserts. The last line of
// a statement may exceed it.
const maxAuditBytes = 512 << 10

// InsertAudits writes audit lines whose ids the caller does not need.
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
