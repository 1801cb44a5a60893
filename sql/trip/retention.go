package trip

import (
	"fmt"

	"go-crontab/job"
	"go-crontab/sql"
)

// Retentions returns the rules of apps, and the rule of the cluster under "". A rule may be
// unreadable, for example after a change outside the program. That is an error, because nothing
// may be removed by such a rule.
func Retentions(r sql.Reader) (map[string]job.Retention, error) {
	out := map[string]job.Retention{}
	err := sql.Each(r, "read retention", retentionRows(out), "SELECT app, spec FROM retention")
	return out, err
}

// UnreadableRule is the error for a rule that this version cannot read. App is "" for the rule of
// the cluster.
type UnreadableRule struct {
	App string
	Err error
}

func (e *UnreadableRule) Error() string {
	if e.App == "" {
		return "the rule of the cluster cannot be read: " + e.Err.Error()
	}
	return fmt.Sprintf("the rule of app %q cannot be read: %v", e.App, e.Err)
}

func (e *UnreadableRule) Unwrap() error { return e.Err }

func retentionRows(out map[string]job.Retention) func(*sql.Rows) error {
	return func(rows *sql.Rows) error {
		var app, spec string
		if err := rows.Scan(&app, &spec); err != nil {
			return err
		}
		r, err := job.DecodeRetention(spec)
		if err != nil {
			return &UnreadableRule{app, err}
		}
		out[app] = r
		return nil
	}
}

// LockRetention reads a rule and keeps others from changing it; nil: there is no rule. It locks
// the cluster's rule, too. The first rule of an app has no row to lock yet, so the lock on the
// cluster's rule makes its writer wait for HoldRules.
func LockRetention(tx *sql.Tx, app string) (*job.Retention, error) {
	var out *job.Retention
	err := sql.Each(tx, "lock retention", func(rows *sql.Rows) error {
		var of, spec string
		if err := rows.Scan(&of, &spec); err != nil || of != app {
			return err
		}
		r, err := job.DecodeRetention(spec)
		if err != nil {
			r = job.Retention{} // an unreadable rule can be replaced
		}
		out = &r
		return nil
	}, "SELECT app, spec FROM retention FORCE INDEX (PRIMARY) WHERE app IN ('', ?) ORDER BY app FOR UPDATE", app)
	return out, err
}

// PutRetention writes a rule. An empty rule of an app removes its row.
func PutRetention(tx *sql.Tx, app string, r job.Retention, who string, now job.Micros) error {
	if app != "" && r == (job.Retention{}) {
		_, err := tx.Exec("drop retention", "DELETE FROM retention WHERE app = ?", app)
		return err
	}
	const query = `
		INSERT INTO retention (app, spec, who, updated)
		VALUES (?, ?, ?, ?)
		ON DUPLICATE KEY UPDATE spec = VALUES(spec), who = VALUES(who), updated = VALUES(updated)`
	_, err := tx.Exec("put retention", query, app, r.Encode(), sql.Cut(who, 128), int64(now))
	return err
}

// HoldRules keeps others from changing the rules of an app and of the cluster. If these differ
// from the given rules, the error is sql.ErrMoved.
func HoldRules(tx *sql.Tx, app string, rules map[string]job.Retention) error {
	found := map[string]job.Retention{}
	err := sql.Each(tx, "lock retention rules", retentionRows(found), `
		SELECT app, spec
		FROM retention FORCE INDEX (PRIMARY)
		WHERE app IN ('', ?)
		ORDER BY app
		LOCK IN SHARE MODE`, app)
	if err == nil && (found[""] != rules[""] || found[app] != rules[app]) {
		err = fmt.Errorf("lock the retention rules of app %q: %w", app, sql.ErrMoved)
	}
	return err
}
