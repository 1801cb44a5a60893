package feed

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"go-crontab/internal/alert"
	"go-crontab/job"
	"go-crontab/sql"
)

// alertsAtOnce bounds two lists of one look: the firing alerts, latest first, and the new alerts.
const alertsAtOnce = 1000

// lookAtAlerts finds alerts that were raised, silenced or ended. Only one node at a time writes
// alerts, so their ids become visible in order.
func (r *reader) lookAtAlerts(ctx context.Context, out *[]Event) error {
	firing, err := firingAlerts(r.db.Reader(ctx), alertsAtOnce)
	if err != nil {
		return err
	}
	fresh, err := alertsAfter(r.db.Reader(ctx), r.alert, alertsAtOnce)
	if err != nil {
		return err
	}

	// Find the ids of changed alerts. A new alert may have ended before it was seen firing.
	now, last := map[int64]int64{}, r.alert
	var changed []int64
	for _, a := range firing {
		now[a.ID] = a.Silence
		if silence, known := r.alerts[a.ID]; !known || silence != a.Silence {
			changed = append(changed, a.ID)
		}
	}
	for id := range r.alerts {
		if _, fires := now[id]; !fires {
			changed = append(changed, id)
		}
	}
	changed = append(changed, fresh...)
	for _, id := range fresh {
		last = max(last, id)
	}

	slices.Sort(changed)
	rows, err := alert.FiredByIDs(r.db.Reader(ctx), slices.Compact(changed))
	if err != nil {
		return err
	}

	for i := range rows {
		a := &rows[i]
		silence, known := r.alerts[a.ID]
		if !known && a.ID > r.alert {
			*out = append(*out, ofAlert(a, Raised, a.First))
		}
		switch {
		case !a.Firing:
			*out = append(*out, ofAlert(a, Recovered, a.Over))
		case a.Silence != 0 && a.Silence != silence:
			*out = append(*out, ofAlert(a, Silenced, cmp.Or(r.clock(), a.Last)))
		}
	}

	r.alerts, r.alert = now, last
	return nil
}

// ofAlert returns the event of an alert. Readers of any app may see an open alert, see
// FiredRow.Open.
func ofAlert(a *alert.FiredRow, action string, at job.Micros) Event {
	id := fmt.Sprintf("f%d-%s", a.ID, action)
	if action == Silenced {
		id += fmt.Sprint("-", a.Silence)
	}
	return Event{
		ID: id, Kind: KindAlert, Action: action, At: at, App: a.App, Open: a.Open(), JobID: a.JobID,
		Job: a.Job, Name: a.Node, Reason: a.Why, Alert: a,
	}
}

// firingAlert is a firing alert.
type firingAlert struct {
	ID      int64
	Silence int64 // the silence that covers it; zero: none
}

// firingAlerts lists firing alerts, the latest first.
func firingAlerts(r sql.Reader, limit int) ([]firingAlert, error) {
	scan := func(rows *sql.Rows) (a firingAlert, err error) {
		err = rows.Scan(&a.ID, &a.Silence)
		return a, err
	}
	return sql.Select(r, "list firing alerts", scan, `SELECT id, silence_id
		FROM alert FORCE INDEX (firing)
		WHERE firing = 1
		ORDER BY id DESC
		LIMIT ?`,
		limit)
}

// alertsAfter lists the ids of alerts above id.
func alertsAfter(r sql.Reader, id int64, limit int) ([]int64, error) {
	return sql.IDs(r, "list new alerts", "SELECT id FROM alert WHERE id > ? ORDER BY id LIMIT ?", id, limit)
}

// lastAlert returns the id of the latest alert, or 0.
func lastAlert(r sql.Reader) (int64, error) {
	found, err := sql.IDs(r, "find latest alert", "SELECT id FROM alert ORDER BY id DESC LIMIT 1")
	if err != nil || len(found) == 0 {
		return 0, err
	}
	return found[0], nil
}
