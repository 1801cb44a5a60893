package trip

import (
	"go-crontab/job"
	"go-crontab/sql"
)

// StopKind is the kind of a stop.
type StopKind string

// Kinds of stops.
const (
	StopCluster  StopKind = "cluster"  // all jobs are paused
	StopApp      StopKind = "app"      // the jobs of an app are paused
	StopHandler  StopKind = "handler"  // the jobs with a handler are not started
	StopRestored StopKind = "restored" // due times before the restore of the database are not started
)

// Stop keeps runs of many jobs from starting.
type Stop struct {
	Kind   StopKind
	Name   string // of the app or handler
	AppID  int32
	Since  job.Micros
	Until  job.Micros // when it ends by itself, zero: never; for StopRestored: the instant of the restore
	Who    string
	Reason string
}

// Pauses reports whether the stop pauses an app at an instant.
func (s *Stop) Pauses(app int32, now job.Micros) bool {
	if s.Until != 0 && s.Until <= now {
		return false
	}
	return s.Kind == StopCluster || s.Kind == StopApp && s.AppID == app
}

// Over reports whether the stop is a pause that is over at an instant. The row of such a pause
// stays for a day, because claims need it to judge due times within the pause.
func (s *Stop) Over(now job.Micros) bool {
	return (s.Kind == StopCluster || s.Kind == StopApp) && s.Until != 0 && s.Until <= now
}

// Told reports whether the audit has the end of the pause. EndPause clears Who when it records
// that end.
func (s *Stop) Told() bool { return s.Who == "" }

// Words returns " by", the author and the reason, to be appended to a sentence.
func (s *Stop) Words() (text string) {
	if s.Who != "" {
		text += " by " + s.Who
	}
	if s.Reason != "" {
		text += ": " + s.Reason
	}
	return text
}

// Stops lists all stops, in a fixed order. They are few.
func Stops(r sql.Reader) ([]Stop, error) {
	const query = `
		SELECT kind, name, app_id, since, until, who, reason
		FROM stop
		ORDER BY kind, name`

	scan := func(rows *sql.Rows) (s Stop, err error) {
		err = rows.Scan(&s.Kind, &s.Name, &s.AppID, &s.Since, &s.Until, &s.Who, &s.Reason)
		return s, err
	}
	return sql.Select(r, "read stops", scan, query)
}

// PutStop writes or replaces a stop. The caller must answer only after all nodes have seen it.
func PutStop(tx *sql.Tx, s Stop) error {
	const query = `
		REPLACE INTO stop (kind, name, app_id, since, until, who, reason)
		VALUES (?, ?, ?, ?, ?, ?, ?)`
	_, err := tx.Exec("write stop", query, s.Kind, s.Name, s.AppID, int64(s.Since), int64(s.Until), s.Who, s.Reason)
	return err
}

// EndPause records that a pause ended at an instant, and that its end is in the audit.
func EndPause(tx *sql.Tx, s Stop, at job.Micros) error {
	s.Until, s.Who, s.Reason = at, "", ""
	return PutStop(tx, s)
}

// DropStop removes a stop, and reports whether it existed.
func DropStop(tx *sql.Tx, kind StopKind, name string) (bool, error) {
	const query = `
		DELETE FROM stop
		WHERE kind = ? AND name = ?`
	n, err := tx.Exec("remove stop", query, kind, name)
	return n == 1, err
}

// Postpone makes prepared runs of a session idle until an instant, and returns their number.
func Postpone(tx *sql.Tx, session Owner, launches []Launch, until job.Micros) (int64, error) {
	if len(launches) == 0 {
		return 0, nil
	}
	query := `
		UPDATE run FORCE INDEX (PRIMARY)
		SET state = 'idle', owner = 0, grp = 0, due_now = ?
		WHERE ` + at(session, Prepared, launches)
	return tx.Exec("postpone runs", query, int64(until))
}
