package api

import (
	"encoding/json"
	"fmt"

	"go-crontab/job"
	"go-crontab/sql"
)

// livesNear reads past sessions near an instant from audit lines. It reads up to limit sessions
// that ended last before the instant, and up to limit that ended first after it. These sessions
// show whether any session was alive at the instant.
func livesNear(r sql.Reader, at job.Micros, limit int) ([]job.SessionLife, error) {
	var out []job.SessionLife
	for _, side := range []string{"at <= ? ORDER BY at DESC", "at > ? ORDER BY at ASC"} {
		err := sql.Each(r, "read lives of sessions", func(rows *sql.Rows) error {
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
		}, `
			SELECT was
			FROM audit FORCE INDEX (ref)
			WHERE kind = ? AND ref = 0 AND was IS NOT NULL AND `+side+`
			LIMIT ?`, job.KindSession, int64(at), limit)
		if err != nil {
			return nil, err
		}
	}

	return out, nil
}
