package trip

import (
	"slices"
	"strconv"
	"strings"

	"go-crontab/job"
	"go-crontab/sql"
)

// Chunk is a piece of the output of an executing run. Pieces do not overlap. A gap between two
// pieces means that output was left out.
type Chunk struct {
	Launch Launch
	job.Piece
}

// outputBytes bounds the output that one statement carries.
const outputBytes = 2 << 20

// PutChunks writes pieces. If a stored piece has the same beginning, PutChunks replaces it,
// because the piece may have grown.
func PutChunks(tx *sql.Tx, chunks []Chunk) error {
	for len(chunks) > 0 {
		n, size := 0, 0
		for n < len(chunks) && n < 500 && (n == 0 || size+len(chunks[n].Data) <= outputBytes) {
			size += len(chunks[n].Data)
			n++
		}
		args := make([]any, 0, 5*n)
		for i := range chunks[:n] {
			c := &chunks[i]
			args = append(args, c.Launch.Run, c.Launch.Claim, c.At, c.Line, c.Data)
		}
		query := `
			INSERT INTO chunk (run_id, claim, at_byte, line, data)
			VALUES (?, ?, ?, ?, ?)` + strings.Repeat(", (?, ?, ?, ?, ?)", n-1) + `
			ON DUPLICATE KEY UPDATE data = VALUES(data)`
		if _, err := tx.Exec("write live output", query, args...); err != nil {
			return err
		}
		chunks = chunks[n:]
	}

	return nil
}

// ChunkRange selects the pieces of a run that begin in [From, To).
type ChunkRange struct {
	Launch   Launch
	From, To int64
}

// CutChunks removes pieces. It forces the index: a scan of a small table would wait for locks on
// pieces of other runs.
func CutChunks(tx *sql.Tx, ranges []ChunkRange) error {
	for part := range slices.Chunk(ranges, 200) {
		args := make([]any, 0, 4*len(part))
		for i := range part {
			r := &part[i]
			args = append(args, r.Launch.Run, r.Launch.Claim, r.From, r.To)
		}
		const one = "run_id = ? AND claim = ? AND at_byte >= ? AND at_byte < ?"
		query := `
			DELETE c
			FROM chunk c FORCE INDEX (PRIMARY)
			WHERE ` + one + strings.Repeat(" OR "+one, len(part)-1)
		if _, err := tx.Exec("cut live output", query, args...); err != nil {
			return err
		}
	}

	return nil
}

// DropChunks removes all pieces of runs, of all their launches.
func DropChunks(tx *sql.Tx, runs []int64) error {
	for part := range slices.Chunk(runs, 500) {
		query := `
			DELETE c
			FROM chunk c FORCE INDEX (PRIMARY)
			WHERE run_id IN ` + list(slices.Values(part))
		if _, err := tx.Exec("drop live output", query); err != nil {
			return err
		}
	}
	return nil
}

// Outputs joins the pieces of each launch. A launch without pieces is missing from the result.
func Outputs(r sql.Reader, launches []Launch) (map[Launch]job.Output, error) {
	out := map[Launch]job.Output{}
	if len(launches) == 0 {
		return out, nil
	}

	query := `
		SELECT run_id, claim, at_byte, line, data
		FROM chunk FORCE INDEX (PRIMARY)
		WHERE run_id IN ` + each(launches, func(l *Launch) int64 { return l.Run }) + `
		ORDER BY run_id, claim, at_byte`

	pieces := map[Launch][]job.Piece{}
	scan := func(rows *sql.Rows) (l Launch, err error) {
		var p job.Piece
		err = rows.Scan(&l.Run, &l.Claim, &p.At, &p.Line, &p.Data)
		pieces[l] = append(pieces[l], p)
		return l, err
	}

	if _, err := sql.Select(r, "read live output", scan, query); err != nil {
		return nil, err
	}

	for _, l := range launches {
		if written := pieces[l]; written != nil {
			out[l] = job.OutputOf(written)
		}
	}

	return out, nil
}

// StrayChunks lists runs that have pieces but do not execute. The transaction that ended such a
// run did not know of the pieces, or the pieces came late.
func StrayChunks(r sql.Reader, limit int) ([]int64, error) {
	query := `
		SELECT c.run_id
		FROM (SELECT DISTINCT run_id FROM chunk) c
		LEFT JOIN run r FORCE INDEX (PRIMARY) ON r.id = c.run_id AND r.state = 'executing'
		WHERE r.id IS NULL
		LIMIT ` + strconv.Itoa(limit)
	return sql.Select(r, "list stray live output", scanID, query)
}
