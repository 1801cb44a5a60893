package read

import (
	"context"
	"fmt"

	"go-crontab/job"
	"go-crontab/sql"
	"go-crontab/sql/trip"
)

// partReads limits how many parts a process reads and decompresses at the same time. A part has 256
// KiB. A reader of a large output holds one part at a time.
var partReads = make(chan struct{}, 4)

// Pieces calls yield with the kept output of an ended run, from a byte offset on and in order. It
// stops at the first error of yield.
func (db *DB) Pieces(ctx context.Context, run *Run, from int64, yield func(job.Piece) error) error {
	ends := run.Output.Pieces()
	if run.Output.Parts == 0 || len(ends) < 2 {
		return each(job.From(ends, from), yield)
	}

	head, tail := ends[0], ends[1]
	if err := each(job.From([]job.Piece{head}, from), yield); err != nil {
		return err
	}

	for at := max(from, head.End()); at < tail.At; {
		part, err := db.part(ctx, run.ID, at)
		if err != nil {
			return err
		}
		if len(part) == 0 {
			break // the rest is missing
		}
		if err := each(job.From(part, at), yield); err != nil {
			return err
		}
		at = part[0].End()
	}

	return each(job.From([]job.Piece{tail}, from), yield)
}

func each(pieces []job.Piece, yield func(job.Piece) error) error {
	for _, p := range pieces {
		if err := yield(p); err != nil {
			return err
		}
	}
	return nil
}

// part returns the part of an output that has a byte, or the next part if that byte was not kept.
// The result is empty after the last part.
func (db *DB) part(ctx context.Context, run, from int64) ([]job.Piece, error) {
	select {
	case partReads <- struct{}{}:
		defer func() { <-partReads }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}

	// No part is larger than 1 MiB, so the part with this byte begins at most 1 MiB before it.
	const query = `
		SELECT at_byte, line, encoding, data
		FROM output_part FORCE INDEX (PRIMARY)
		WHERE run_id = ? AND at_byte > ? AND at_byte + size > ?
		ORDER BY at_byte
		LIMIT 1`
	scan := func(rows *sql.Rows) (p job.Piece, err error) {
		var e job.Encoding
		if err := rows.Scan(&p.At, &p.Line, &e, &p.Data); err != nil {
			return p, err
		}
		if p.Data, err = job.UnpackPart(p.Data, e); err != nil {
			err = fmt.Errorf("%w: run %d: %w", ErrUnreadable, run, err)
		}
		return p, err
	}
	return sql.Select(db.Reader(ctx), "read part of output", scan, query, run, from-1<<20, from)
}

// MissingParts counts the parts of an output that are announced but not stored.
type MissingParts struct {
	Count  int
	Coming bool // their node probably still writes them
}

// MissingParts counts the missing parts of the output of an ended run.
func (db *DB) MissingParts(ctx context.Context, run *Run, now job.Micros) (m MissingParts, err error) {
	if run.Output.Parts == 0 {
		return m, nil
	}

	const query = `
		SELECT COUNT(*), EXISTS (
			SELECT 1
			FROM life FORCE INDEX (session)
			WHERE session = ? AND (gone IS NULL OR gone > ?))
		FROM output_part FORCE INDEX (PRIMARY)
		WHERE run_id = ?`
	scan := func(rows *sql.Rows) (m MissingParts, err error) {
		err = rows.Scan(&m.Count, &m.Coming)
		return m, err
	}
	found, err := sql.Select(db.Reader(ctx), "count parts of output", scan, query, run.Session[:],
		int64(now.Add(-trip.PartGrace)), run.ID)
	if err != nil {
		return m, err
	}

	m.Count = max(0, run.Output.Parts-found[0].Count)
	m.Coming = m.Count > 0 && found[0].Coming && now.Sub(run.Ended) < trip.PartPatience
	return m, nil
}
