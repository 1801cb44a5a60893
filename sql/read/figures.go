package read

import (
	"encoding/json"

	"go-crontab/job"
	"go-crontab/sql"
)

// Figure counts the events of ten seconds.
type Figure struct {
	At     job.Micros // start of the ten seconds
	Starts int64
	Ends   int64
	Failed int64
	Late   job.Lates
}

// Figures reads the figures of all processes from the instant from on.
func Figures(r sql.Reader, from job.Micros) ([]Figure, error) {
	var out []Figure
	err := sql.Each(r, "read run statistics", func(rows *sql.Rows) error {
		var (
			f    Figure
			text []byte
			late [][2]int64
		)
		if err := rows.Scan(&f.At, &f.Starts, &f.Ends, &f.Failed, &text); err != nil {
			return err
		}

		// The value may be unreadable if it was changed outside the program. It must not hide the
		// other figures.
		_ = json.Unmarshal(text, &late)
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
