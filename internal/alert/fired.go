package alert

import (
	"encoding/json"
	"slices"

	"go-crontab/job"
	"go-crontab/sql"
)

// FiredRow is an alert, firing or over.
type FiredRow struct {
	ID       int64
	Subject  [16]byte // hash of the rule, the event and the job, app or node concerned
	Firing   bool
	RuleID   int64
	Rule     string
	Event    job.AlertEvent
	Severity string
	App      string
	JobID    int64
	Job      string
	Owner    string
	Node     string
	Run      string
	Summary  string
	First    job.Micros
	Last     job.Micros
	Seen     int64
	Told     job.Micros // when the last message about it was created; zero: never
	Silence  int64      // the silence that covers it; zero: none
	Over     job.Micros // zero while it fires
	Why      string     // why it is over
}

const firedColumns = "id, subject, firing IS NOT NULL, rule_id, rule, event, severity, app, job_id, job, " +
	"owner, node, run, summary, first_at, last_at, seen, told_at, silence_id, over_at, over_why"

func scanFired(rows *sql.Rows) (r FiredRow, err error) {
	var subject []byte
	err = rows.Scan(&r.ID, &subject, &r.Firing, &r.RuleID, &r.Rule, &r.Event, &r.Severity, &r.App, &r.JobID,
		&r.Job, &r.Owner, &r.Node, &r.Run, &r.Summary, &r.First, &r.Last, &r.Seen, &r.Told, &r.Silence,
		&r.Over, &r.Why)
	copy(r.Subject[:], subject)
	return r, err
}

// closed lists events whose alerts may belong to no app but name things that only readers of all
// apps may see: the job that failed last, the error of a job file, a token, or the settings of the
// sign-in.
var closed = []job.AlertEvent{
	job.AlertFailures, job.AlertFolderRefused, job.AlertExpiring, job.AlertOIDCUnreachable,
}

// Open reports whether readers of any app may see the alert.
func (r *FiredRow) Open() bool { return r.App == "" && !slices.Contains(closed, r.Event) }

// FiredByID returns an alert, or sql.ErrNotFound.
func FiredByID(r sql.Reader, id int64) (FiredRow, error) {
	return sql.First(sql.Select(r, "read alert", scanFired, "SELECT "+firedColumns+" FROM alert WHERE id = ?", id))
}

// readFiring lists the firing alerts by id.
func readFiring(r sql.Reader, limit int) ([]FiredRow, error) {
	return sql.Select(r, "list firing alerts of rules", scanFired, `SELECT `+firedColumns+`
		FROM alert FORCE INDEX (firing)
		WHERE firing = 1
		ORDER BY id
		LIMIT ?`,
		limit)
}

// FiredByIDs returns the existing alerts among the given ids, by id.
func FiredByIDs(r sql.Reader, ids []int64) (out []FiredRow, err error) {
	for part := range slices.Chunk(ids, 900) {
		list, args := sql.In(nil, part)
		found, err := sql.Select(r, "read alerts", scanFired, `SELECT `+firedColumns+`
			FROM alert FORCE INDEX (PRIMARY)
			WHERE id IN `+list+`
			ORDER BY id`,
			args...)
		if err != nil {
			return nil, err
		}
		out = append(out, found...)
	}
	return out, nil
}

// writeFired writes alerts. Rows without an id are new and get one. Existing rows are written
// first: if an alert is over, its subject is free for a new alert.
func writeFired(tx *sql.Tx, rows []*FiredRow) error {
	firing := func(r *FiredRow) any {
		if r.Firing {
			return 1
		}
		return nil
	}

	for _, r := range rows {
		if r.ID == 0 {
			continue
		}
		_, err := tx.Exec("update alert", `UPDATE alert
			SET firing = ?, severity = ?, owner = ?, node = ?, run = ?, summary = ?, last_at = ?, seen = ?,
				told_at = ?, silence_id = ?, over_at = ?, over_why = ?
			WHERE id = ?`,
			firing(r), r.Severity, sql.Cut(r.Owner, 1024), r.Node, r.Run, sql.Cut(r.Summary, 1024),
			int64(r.Last), r.Seen, int64(r.Told), r.Silence, int64(r.Over), sql.Cut(r.Why, 512), r.ID)
		if err != nil {
			return err
		}
	}

	for _, r := range rows {
		if r.ID != 0 {
			continue
		}
		var err error
		r.ID, err = tx.Insert("insert alert", `INSERT INTO alert
			(subject, firing, rule_id, rule, event, severity, app, job_id, job, owner, node, run,
			summary, first_at, last_at, seen, told_at, silence_id, over_at, over_why)
			VALUES `+sql.Values(1, 20),
			r.Subject[:], firing(r), r.RuleID, r.Rule, r.Event, r.Severity, r.App, r.JobID, r.Job,
			sql.Cut(r.Owner, 1024), r.Node, r.Run, sql.Cut(r.Summary, 1024), int64(r.First), int64(r.Last),
			r.Seen, int64(r.Told), r.Silence, int64(r.Over), sql.Cut(r.Why, 512))
		if err != nil {
			return err
		}
	}
	return nil
}

// readStreaks reads the times of recent failures, by subject.
func readStreaks(r sql.Reader, subjects [][16]byte) (map[[16]byte][]job.Micros, error) {
	out := map[[16]byte][]job.Micros{}
	if len(subjects) == 0 {
		return out, nil
	}

	var args []any
	for i := range subjects {
		args = append(args, subjects[i][:])
	}
	list, _ := sql.In(nil, subjects)

	err := sql.Each(r, "read streaks", func(rows *sql.Rows) error {
		var (
			subject []byte
			text    string
			times   []job.Micros
			key     [16]byte
		)
		if err := rows.Scan(&subject, &text); err != nil {
			return err
		}
		copy(key[:], subject)
		_ = json.Unmarshal([]byte(text), &times)
		out[key] = times
		return nil
	}, "SELECT subject, times FROM alert_streak WHERE subject IN "+list, args...)

	return out, err
}

// writeStreak writes the times of the recent failures of a subject.
func writeStreak(tx *sql.Tx, rule int64, subject [16]byte, times []job.Micros, now job.Micros) error {
	text, err := json.Marshal(times)
	if err != nil {
		return err
	}
	_, err = tx.Exec("write streak", `REPLACE INTO alert_streak (rule_id, subject, times, updated)
		VALUES (?, ?, ?, ?)`,
		rule, subject[:], string(text), int64(now))
	return err
}
