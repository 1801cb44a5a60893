package sql

import (
	"context"
	stdsql "database/sql"
	"encoding/json"
	"fmt"

	"go-crontab/job"

	"github.com/google/uuid"
)

// Figure is how much happened in ten seconds.
type Figure struct {
	At     job.Micros // when they begin
	Starts int64
	Ends   int64
	Failed int64
	Late   job.Lates
}

// PutFigures writes the figures of a process, in place of what it wrote of the same times before, and removes old ones
// of all. So it can be done again.
func (tx *Tx) PutFigures(source uuid.UUID, figures []Figure, before job.Micros) error {
	if len(figures) > 0 {
		var args []any
		for i := range figures {
			f := &figures[i]
			late, err := json.Marshal(pairs(&f.Late))
			if err != nil {
				return fmt.Errorf("write figures: %w", err)
			}
			args = append(args, int64(f.At), source[:], f.Starts, f.Ends, f.Failed, string(late))
		}
		_, err := tx.Exec("write figures", "INSERT INTO figure (at, source, starts, ends, failed, late) VALUES "+Values(len(figures), 6)+
			" ON DUPLICATE KEY UPDATE starts = VALUES(starts), ends = VALUES(ends), failed = VALUES(failed), late = VALUES(late)", args...)
		if err != nil {
			return err
		}
	}
	_, err := tx.Exec("remove old figures", "DELETE FROM figure WHERE at < ?", int64(before))
	return err
}

func pairs(l *job.Lates) [][2]int64 {
	out := [][2]int64{}
	for class, n := range l {
		if n != 0 {
			out = append(out, [2]int64{int64(class), n})
		}
	}
	return out
}

// Figures reads what all processes wrote of times from an instant on.
func (db *DB) Figures(ctx context.Context, from job.Micros) ([]Figure, error) {
	var out []Figure
	err := db.query(ctx, "read figures", func(rows *stdsql.Rows) error {
		var (
			f    Figure
			text []byte
			late [][2]int64
		)
		if err := rows.Scan(&f.At, &f.Starts, &f.Ends, &f.Failed, &text); err != nil {
			return err
		}
		_ = json.Unmarshal(text, &late) // what a hand wrote there and cannot be read counts as none: the others are to be seen
		for _, p := range late {
			if p[0] >= 0 && p[0] < job.LateClasses {
				f.Late[p[0]] += p[1]
			}
		}
		out = append(out, f)
		return nil
	}, "SELECT at, starts, ends, failed, late FROM figure WHERE at >= ? ORDER BY at", int64(from))
	return out, err
}
