package sql

import (
	"context"
	stdsql "database/sql"
	"slices"
	"strings"

	"go-crontab/job"

	"github.com/google/uuid"
)

// Chunk is a piece of the output of an attempt that executes. Pieces do not overlap; where one does not begin at the
// end of the one before, output was left out.
type Chunk struct {
	Launch job.Launch
	job.Piece
}

// PutChunks writes pieces. One that is there already, known by where it begins, is replaced: it may have grown.
func (tx *Tx) PutChunks(chunks []Chunk) error {
	for len(chunks) > 0 {
		n, size := 0, 0
		for n < len(chunks) && n < 500 && (n == 0 || size+len(chunks[n].Data) <= maxOutputBytes) {
			size += len(chunks[n].Data)
			n++
		}
		args := make([]any, 0, 4*n)
		for i := range chunks[:n] {
			c := &chunks[i]
			args = append(args, c.Launch.Session[:], c.Launch.N, c.At, c.Data)
		}
		_, err := tx.exec("write chunks", "INSERT INTO chunk (session_id, launch, at_byte, data) VALUES "+values(n, 4)+
			" ON DUPLICATE KEY UPDATE data = VALUES(data)", args...)
		if err != nil {
			return err
		}
		chunks = chunks[n:]
	}
	return nil
}

// ChunkRange names the pieces of an attempt that begin at From or behind it, and before To.
type ChunkRange struct {
	Launch   job.Launch
	From, To int64
}

// CutChunks removes pieces. The hints here keep a small table from being scanned, and pieces of others from being
// waited for.
func (tx *Tx) CutChunks(ranges []ChunkRange) error {
	for part := range slices.Chunk(ranges, 200) {
		cond, args := "", make([]any, 0, 4*len(part))
		for i := range part {
			r := &part[i]
			cond += " OR session_id = ? AND launch = ? AND at_byte >= ? AND at_byte < ?"
			args = append(args, r.Launch.Session[:], r.Launch.N, r.From, r.To)
		}
		if _, err := tx.exec("cut chunks", "DELETE c FROM chunk c FORCE INDEX (PRIMARY) WHERE "+strings.TrimPrefix(cond, " OR "), args...); err != nil {
			return err
		}
	}
	return nil
}

// DropChunks removes all pieces of attempts that are over.
func (tx *Tx) DropChunks(launches []job.Launch) error {
	bySession := map[uuid.UUID][]int64{}
	for _, l := range launches {
		bySession[l.Session] = append(bySession[l.Session], l.N)
	}
	for session, counters := range bySession {
		for part := range slices.Chunk(counters, 500) {
			_, err := tx.exec("drop chunks", "DELETE c FROM "+eachOf+"chunk c FORCE INDEX (PRIMARY) ON c.session_id = ? AND c.launch = n.id",
				numbers(part), session[:])
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// TakeChunks removes all pieces of attempts of one session and returns, by launch counter, what they make of an
// output. It does not use eachOf, of which MySQL says that it cannot be locked.
func (tx *Tx) TakeChunks(session uuid.UUID, counters []int64) (map[int64]job.Output, error) {
	if len(counters) == 0 {
		return nil, nil
	}
	pieces := map[int64][]job.Piece{}
	list, args := in([]any{session[:]}, counters)
	err := tx.query("take chunks", func(rows *stdsql.Rows) error {
		var n int64
		var p job.Piece
		err := rows.Scan(&n, &p.At, &p.Data)
		pieces[n] = append(pieces[n], p)
		return err
	}, "SELECT launch, at_byte, data FROM chunk FORCE INDEX (PRIMARY) WHERE session_id = ? AND launch IN "+list+" ORDER BY launch, at_byte FOR UPDATE", args...)
	if err != nil || len(pieces) == 0 {
		return nil, err
	}
	out := make(map[int64]job.Output, len(pieces))
	var launches []job.Launch
	for n, written := range pieces {
		out[n] = job.OutputOf(written)
		launches = append(launches, job.Launch{Session: session, N: n})
	}
	return out, tx.DropChunks(launches)
}

// Chunks returns the pieces of an attempt that hold the byte from or what is behind it, in their order.
func (db *DB) Chunks(ctx context.Context, l job.Launch, from int64) ([]job.Piece, error) {
	var out []job.Piece
	err := db.query(ctx, "read chunks", func(rows *stdsql.Rows) error {
		var p job.Piece
		err := rows.Scan(&p.At, &p.Data)
		if p.End() > from {
			out = append(out, p)
		}
		return err
	}, "SELECT at_byte, data FROM chunk WHERE session_id = ? AND launch = ? AND at_byte >="+
		" COALESCE((SELECT MAX(c.at_byte) FROM chunk c WHERE c.session_id = ? AND c.launch = ? AND c.at_byte <= ?), 0) ORDER BY at_byte",
		l.Session[:], l.N, l.Session[:], l.N, from)
	return out, err
}

// StrayChunks lists attempts that have pieces and no task any more: whoever ended them did not know of the pieces, or
// the pieces came late. A launch that has no task never gets one again, so the answer does not age.
func (db *DB) StrayChunks(ctx context.Context, limit int) ([]job.Launch, error) {
	var out []job.Launch
	err := db.query(ctx, "list stray chunks", func(rows *stdsql.Rows) error {
		var l job.Launch
		err := rows.Scan(&l.Session, &l.N)
		out = append(out, l)
		return err
	}, "SELECT c.session_id, c.launch FROM (SELECT DISTINCT session_id, launch FROM chunk) c"+
		" WHERE NOT EXISTS (SELECT 1 FROM task t FORCE INDEX (owner) WHERE t.session_id = c.session_id AND t.launch = c.launch) LIMIT ?", limit)
	return out, err
}
