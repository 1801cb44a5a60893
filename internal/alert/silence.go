package alert

import (
	"go-crontab/job"
	"go-crontab/sql"
)

const silenceColumns = "id, app, job, rule, until, reason, who, created"

func scanSilence(rows *sql.Rows) (s job.Silence, err error) {
	err = rows.Scan(&s.ID, &s.App, &s.Job, &s.Rule, &s.Until, &s.Reason, &s.Who, &s.Created)
	return s, err
}

// Silences lists up to limit silences that end after until, by id. It begins after the id `after`.
func Silences(r sql.Reader, until job.Micros, after int64, limit int) ([]job.Silence, error) {
	return sql.Select(r, "list silences", scanSilence, `SELECT `+silenceColumns+`
		FROM alert_silence
		WHERE id > ? AND until > ?
		ORDER BY id
		LIMIT ?`,
		after, int64(until), limit)
}

// SilenceByID returns a silence, or sql.ErrNotFound.
func SilenceByID(r sql.Reader, id int64) (job.Silence, error) {
	return sql.First(sql.Select(r, "read silence", scanSilence, `SELECT `+silenceColumns+`
		FROM alert_silence
		WHERE id = ?`,
		id))
}

// countSilences counts the silences that end after an instant.
func countSilences(tx *sql.Tx, now job.Micros) (n int, err error) {
	err = sql.Each(tx, "count silences", func(rows *sql.Rows) error { return rows.Scan(&n) },
		"SELECT COUNT(*) FROM alert_silence WHERE until > ?", int64(now))
	return n, err
}

// insertSilence writes a silence and sets its id.
func insertSilence(tx *sql.Tx, s *job.Silence) (err error) {
	s.ID, err = tx.Insert("insert silence", `INSERT INTO alert_silence
		(app, job, rule, until, reason, who, created)
		VALUES (?, ?, ?, ?, ?, ?, ?)`,
		s.App, s.Job, s.Rule, int64(s.Until), s.Reason, sql.Cut(s.Who, 128), int64(s.Created))
	if err != nil {
		return err
	}
	return definitionsChanged(tx)
}

// lockSilence locks and returns a silence. If there is none, the error is sql.ErrNotFound.
func lockSilence(tx *sql.Tx, id int64) (job.Silence, error) {
	return sql.First(sql.Select(tx, "lock silence", scanSilence, `SELECT `+silenceColumns+`
		FROM alert_silence
		WHERE id = ?
		FOR UPDATE`,
		id))
}

// endSilence sets the end of a silence that this transaction has locked.
func endSilence(tx *sql.Tx, id int64, at job.Micros) error {
	_, err := tx.Exec("end silence", "UPDATE alert_silence SET until = ? WHERE id = ?", int64(at), id)
	if err != nil {
		return err
	}
	return definitionsChanged(tx)
}
