package trip

import "go-crontab/sql"

// LockStop locks a stop and returns it. If there is none, the error is sql.ErrNotFound.
func LockStop(tx *sql.Tx, kind StopKind, name string) (Stop, error) {
	const query = `
		SELECT kind, name, app_id, since, until, who, reason
		FROM stop FORCE INDEX (PRIMARY)
		WHERE kind = ? AND name = ?
		FOR UPDATE`

	scan := func(rows *sql.Rows) (s Stop, err error) {
		err = rows.Scan(&s.Kind, &s.Name, &s.AppID, &s.Since, &s.Until, &s.Who, &s.Reason)
		return s, err
	}
	found, err := sql.Select(tx, "lock stop", scan, query, kind, name)
	if err == nil && len(found) == 0 {
		err = sql.ErrNotFound
	}
	if err != nil {
		return Stop{}, err
	}
	return found[0], nil
}
