package read

import (
	"context"

	"go-crontab/job"
	"go-crontab/sql"
	"go-crontab/sql/trip"
)

// Ending holds the runs that one transaction ended. Ids grow with time, but a slow transaction may
// commit after a transaction with a higher id. So a subscriber reads missing ids again, for as long
// as a transaction may take.
type Ending struct {
	ID   int64
	At   job.Micros
	Runs []trip.Note
}

func scanEnding(rows *sql.Rows) (e Ending, err error) {
	var b []byte
	if err := rows.Scan(&e.ID, &e.At, &b); err != nil {
		return e, err
	}
	// A damaged row must not stop subscribers, so return its readable part.
	e.Runs, _ = trip.DecodeNotes(b)
	return e, nil
}

// endingsAtOnce is the number of rows that one statement reads.
const endingsAtOnce = 50

// EndedAfter lists the endings with higher ids. It stops when they hold at least `runs` runs, or
// when there are no more. It does not split an ending.
func (db Watch) EndedAfter(ctx context.Context, after int64, runs int) ([]Ending, error) {
	const query = `
		SELECT id, at, runs
		FROM ending FORCE INDEX (PRIMARY)
		WHERE id > ?
		ORDER BY id
		LIMIT ?`

	var out []Ending
	for n := 0; n < runs; {
		found, err := sql.Select(db.Reader(ctx), "read ended runs", scanEnding, query, after, endingsAtOnce)
		if err != nil {
			return nil, err
		}

		for _, e := range found {
			n, after, out = n+len(e.Runs), e.ID, append(out, e)
			if n >= runs {
				break
			}
		}

		if len(found) < endingsAtOnce {
			break
		}
	}

	return out, nil
}

// EndedIn lists the endings in spans of ids.
func (db Watch) EndedIn(ctx context.Context, spans []sql.Span) ([]Ending, error) {
	var out []Ending
	for _, s := range spans {
		const query = `
			SELECT id, at, runs
			FROM ending FORCE INDEX (PRIMARY)
			WHERE id BETWEEN ? AND ?
			ORDER BY id`
		found, err := sql.Select(db.Reader(ctx), "read ended runs", scanEnding, query, s.From, s.To)
		if err != nil {
			return nil, err
		}

		out = append(out, found...)
	}

	return out, nil
}

// LastIDs returns the highest visible ids of endings and of audit lines. Without any it returns
// zero.
func (db Watch) LastIDs(ctx context.Context) (ending, line int64, err error) {
	const query = `
		SELECT COALESCE((SELECT MAX(id) FROM ending), 0), COALESCE((SELECT MAX(id) FROM audit), 0)`
	scan := func(rows *sql.Rows) (ids [2]int64, err error) {
		err = rows.Scan(&ids[0], &ids[1])
		return ids, err
	}

	found, err := sql.Select(db.Reader(ctx), "read last ids", scan, query)
	if err != nil {
		return 0, 0, err
	}
	return found[0][0], found[0][1], nil
}

// RunsOf reads the runs of endings, in order. Runs that retention has removed are left out.
func (db Watch) RunsOf(ctx context.Context, endings []Ending) ([]Run, error) {
	var ids []int64
	for i := range endings {
		for _, n := range endings[i].Runs {
			ids = append(ids, n.Run)
		}
	}

	rows, err := runsByID(db.Reader(ctx), ids)
	out := make([]Run, 0, len(rows))
	for _, id := range ids {
		if r := rows[id]; r != nil {
			out = append(out, *r)
		}
	}

	return out, err
}
