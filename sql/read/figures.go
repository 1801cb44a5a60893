package read

import (
	"encoding/json"

	"go-crontab/job"
	"go-crontab/sql"
)

// Figure is how much happened in ten seconds.
type Figure struct {
	At     job.Micros // when they begin
	Starts int64
	Ends   int64
	Failed int64
	Late   job.Lates
}

// Figures reads what all processes wrote of times from an instant on.
func Figures(r sql.Reader, from job.Micros) ([]Figure, error) {
	var out []Figure
	err := sql.Each(r, "read figures", func(rows *sql.Rows) error {
		var (
			f    Figure
			text []byte
			late [][2]int64
		)
		if err := rows.Scan(&f.At, &f.Starts, &f.Ends, &f.Failed, &text); err != nil {
			return err
		}

		// what a hand wrote there and cannot be read counts as none: the others are to be seen
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
