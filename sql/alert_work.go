package sql

import (
	"context"
	stdsql "database/sql"
	"encoding/json"
	"slices"
	"strings"

	"go-crontab/job"

	"github.com/google/uuid"
)

// What is here is for the node that evaluates the rules of alerts. It reads without locks, by indexes, and writes no
// table of the trip.

// AlertWork is who evaluates, and how far that has come.
type AlertWork struct {
	N        int64 // counts steps: one holds only if nobody has taken another since
	Holder   uuid.UUID
	Until    job.Micros
	Position string // "": nothing is evaluated
	Changes  int64  // counts changes of definitions
}

// AlertWork reads it.
func (db *DB) AlertWork(ctx context.Context) (AlertWork, error) {
	var w AlertWork
	err := db.query(ctx, "read the work on alerts", func(rows *stdsql.Rows) error {
		var (
			id       int
			n        int64
			holder   []byte
			until    job.Micros
			position stdsql.NullString
		)
		if err := rows.Scan(&id, &n, &holder, &until, &position); err != nil {
			return err
		}
		if id == 2 {
			w.Changes = n
			return nil
		}
		w.N, w.Until, w.Position = n, until, position.String
		copy(w.Holder[:], holder)
		return nil
	}, "SELECT id, n, holder, until, position FROM alert_work")
	return w, err
}

// StepAlerts takes a step of the work, as it was read: it writes who holds it until when, how far it has come, and how
// much was lost. It tells whether nobody has taken another step since; if somebody has, nothing of the transaction may
// stand.
func (tx *Tx) StepAlerts(w AlertWork, lost int64) (bool, error) {
	n, err := tx.Exec("step of alerts", "UPDATE alert_work SET "+Next("n")+", holder = ?, until = ?, position = ?, "+Added("lost")+" WHERE id = 1 AND n = ?",
		w.Holder[:], int64(w.Until), w.Position, lost, w.N)
	return n == 1, err
}

// LoseAlerts counts events that cannot be told.
func (tx *Tx) LoseAlerts(n int64) error {
	_, err := tx.Exec("count lost alerts", "UPDATE alert_work SET "+Added("lost")+" WHERE id = 1", n)
	return err
}

// AnyPinged tells whether some living job calls somebody when a due time has ended.
func (db *DB) AnyPinged(ctx context.Context) (bool, error) {
	ids, err := db.ids(ctx, "look for a job with a ping", "SELECT job_id FROM job_ref FORCE INDEX (PRIMARY) WHERE kind = ? LIMIT 1", RefPing)
	return len(ids) > 0, err
}

// PingedJobs picks the living jobs that call somebody when a due time has ended.
func (db *DB) PingedJobs(ctx context.Context, ids []int64) (out []int64, err error) {
	for part := range slices.Chunk(ids, 500) {
		list, args := In([]any{RefPing}, part)
		found, err := db.ids(ctx, "pick jobs with a ping", "SELECT job_id FROM job_ref FORCE INDEX (PRIMARY) WHERE kind = ? AND name = '' AND job_id IN "+list, args...)
		if err != nil {
			return nil, err
		}
		out = append(out, found...)
	}
	return out, nil
}

// WriteFired writes alerts: those without an id are new and get one. Those that are there are written first: a new one
// may have the subject of one that is over.
func (tx *Tx) WriteFired(rows []*FiredRow) error {
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
		if _, err := tx.Exec("update alert", "UPDATE alert SET firing = ?, severity = ?, owner = ?, node = ?, run = ?, summary = ?, last_at = ?, seen = ?, told_at = ?, silence_id = ?, over_at = ?, over_why = ? WHERE id = ?",
			firing(r), r.Severity, Cut(r.Owner, 1024), r.Node, r.Run, Cut(r.Summary, 1024), int64(r.Last), r.Seen, int64(r.Told), r.Silence, int64(r.Over), Cut(r.Why, 512), r.ID); err != nil {
			return err
		}
	}
	for _, r := range rows {
		if r.ID != 0 {
			continue
		}
		var err error
		r.ID, err = tx.Insert("insert alert", "INSERT INTO alert (subject, firing, rule_id, rule, event, severity, app, job_id, job, owner, node, run, summary, first_at, last_at, seen, told_at, silence_id, over_at, over_why) VALUES "+
			Values(1, 20), r.Subject[:], firing(r), r.RuleID, r.Rule, r.Event, r.Severity, r.App, r.JobID, r.Job, Cut(r.Owner, 1024), r.Node, r.Run, Cut(r.Summary, 1024),
			int64(r.First), int64(r.Last), r.Seen, int64(r.Told), r.Silence, int64(r.Over), Cut(r.Why, 512))
		if err != nil {
			return err
		}
	}
	return nil
}

// Streaks reads when what some subjects are about has failed lately.
func (db *DB) Streaks(ctx context.Context, subjects [][16]byte) (map[[16]byte][]job.Micros, error) {
	out := map[[16]byte][]job.Micros{}
	if len(subjects) == 0 {
		return out, nil
	}
	var args []any
	for i := range subjects {
		args = append(args, subjects[i][:])
	}
	list, _ := In(nil, subjects)
	err := db.query(ctx, "read streaks", func(rows *stdsql.Rows) error {
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

// WriteStreak writes when what a subject is about has failed lately.
func (tx *Tx) WriteStreak(rule int64, subject [16]byte, times []job.Micros, now job.Micros) error {
	text, err := json.Marshal(times)
	if err != nil {
		return err
	}
	_, err = tx.Exec("write streak", "REPLACE INTO alert_streak (rule_id, subject, times, updated) VALUES (?, ?, ?, ?)", rule, subject[:], string(text), int64(now))
	return err
}

// OpenDelivery locks and returns the message of a rule to a channel that nobody has begun to send and that was made behind
// an instant, or ErrNotFound.
func (tx *Tx) OpenDelivery(channel, rule int64, target string, since job.Micros) (DeliveryRow, error) {
	return tx.oneDelivery("SELECT "+deliveryColumns+" FROM delivery FORCE INDEX (grp) WHERE channel_id = ? AND state = 0 AND rule_id = ? AND target = ? AND attempts = 0 AND kind = 'alert' AND created > ? ORDER BY id LIMIT 1 FOR UPDATE",
		channel, rule, target, int64(since))
}

// OpenPing locks and returns the ping of a job that nobody has begun to send, or ErrNotFound.
func (tx *Tx) OpenPing(jobID int64) (DeliveryRow, error) {
	return tx.oneDelivery("SELECT "+deliveryColumns+" FROM delivery FORCE INDEX (job) WHERE job_id = ? AND state = 0 AND attempts = 0 AND kind = 'ping' ORDER BY id LIMIT 1 FOR UPDATE", jobID)
}

// NewerPing tells whether a job has a ping that was made behind one, whatever has become of it.
func (db *DB) NewerPing(ctx context.Context, d *DeliveryRow) (bool, error) {
	ids, err := db.ids(ctx, "look for a newer ping", "SELECT id FROM delivery FORCE INDEX (job) WHERE job_id = ? AND state IN (0, 1, 2, 3, 4, 5) AND id > ? AND kind = 'ping' LIMIT 1", d.JobID, d.ID)
	return len(ids) > 0, err
}

func (tx *Tx) oneDelivery(query string, args ...any) (DeliveryRow, error) {
	var out []DeliveryRow
	err := tx.query("read delivery", deliveryRows(&out), query, args...)
	return First(out, err)
}

// GrowDelivery has a message that this transaction has locked tell of more.
func (tx *Tx) GrowDelivery(r *DeliveryRow) error {
	_, err := tx.Exec("grow delivery", "UPDATE delivery SET events = ?, items = ?, updated = ?, target = ? WHERE id = ?", r.Events, r.Items, int64(r.Updated), r.Target, r.ID)
	return err
}

// CountOpen counts the messages to a channel that are neither sent nor given up.
func (tx *Tx) CountOpen(channel int64) (n int, err error) {
	err = tx.query("count open deliveries", func(rows *stdsql.Rows) error { return rows.Scan(&n) },
		"SELECT COUNT(*) FROM delivery FORCE INDEX (grp) WHERE channel_id = ? AND state IN (0, 1)", channel)
	return n, err
}

// Beaten writes that a heartbeat was looked at, and why nothing is sent.
func (tx *Tx) Beaten(channel int64, at job.Micros, held string) error {
	_, err := tx.Exec("write heartbeat", "UPDATE alert_channel SET beat_at = ?, held = ? WHERE id = ?", int64(at), Cut(held, 512), channel)
	return err
}

// BusyLanes are the messages that are not asked for, because others like them are being sent.
type BusyLanes struct {
	Channels []int64
	Pings    []PingLane
	NoPings  bool // as many are called as may be at once
}

// PingLane are the pings to a host, of some jobs: a host that hangs holds up nobody else, and one that all jobs call is
// called for several of them at once.
type PingLane struct {
	Host string // DeliveryRow.Target
	Rest int64  // that the job's id leaves when it is divided by PingsAtHost
}

// PingsAtHost is how many pings are called at once at a host, by a node.
const PingsAtHost = 4

// DueDeliveries lists messages that are to be sent, up to limit to channels and as many pings, and those that somebody did
// not send in time, or who is gone. What is busy is left out here: a channel that hangs would fill the list with what
// waits for it.
//
// What waits for channels is read by job_id = 0, past no ping. Of pings no more are passed than there are jobs with one,
// and those that are tried again.
func (db *DB) DueDeliveries(ctx context.Context, now job.Micros, busy BusyLanes, limit int) (out []DeliveryRow, err error) {
	columns := "d." + strings.ReplaceAll(deliveryColumns, ", ", ", d.")
	free, lanes := "", []any(nil)
	if len(busy.Channels) > 0 {
		list, ids := In(nil, busy.Channels)
		free, lanes = free+" AND d.channel_id NOT IN "+list, append(lanes, ids...)
	}
	if len(busy.Pings) > 0 {
		free += " AND (d.job_id = 0 OR (d.target, d.job_id MOD ?) NOT IN (" + strings.TrimSuffix(strings.Repeat("(?, ?), ", len(busy.Pings)), ", ") + "))"
		lanes = append(lanes, PingsAtHost)
		for _, p := range busy.Pings {
			lanes = append(lanes, p.Host, p.Rest)
		}
	}
	var parts []string
	var args []any
	read := func(index, cond, order string) {
		parts = append(parts, "(SELECT "+columns+" FROM delivery d FORCE INDEX ("+index+") WHERE "+cond+free+order+" LIMIT ?)")
		args = append(append(append(args, int64(now)), lanes...), limit)
	}
	read("job", "d.job_id = 0 AND d.state = 0 AND d.next_at <= ?", " ORDER BY d.next_at, d.id")
	if !busy.NoPings {
		read("due", "d.state = 0 AND d.next_at <= ? AND d.job_id > 0", " ORDER BY d.next_at")
	}
	read("due", "d.state = 1 AND (d.next_at <= ? OR NOT EXISTS (SELECT 1 FROM session s WHERE s.id = d.session_id))", "")
	err = db.query(ctx, "list due deliveries", deliveryRows(&out), strings.Join(parts, " UNION ALL "), args...)
	return out, err
}

// EarlierDelivery looks for messages of the same rule to the same channel that were made before one, have a text in their
// items, and are neither sent nor given up. It returns when the last of them is tried next, or free again; zero: there is
// none.
func (db *DB) EarlierDelivery(ctx context.Context, d *DeliveryRow, text string) (at job.Micros, err error) {
	err = db.query(ctx, "look for earlier deliveries", func(rows *stdsql.Rows) error { return rows.Scan(&at) },
		"SELECT COALESCE(MAX(next_at), 0) FROM delivery FORCE INDEX (grp) WHERE channel_id = ? AND state IN (0, 1) AND rule_id = ? AND id < ? AND LOCATE(?, items) > 0",
		d.ChannelID, d.RuleID, d.ID, text)
	return at, err
}

// EachTold reads the messages of some rules to a channel that were made since an instant, and were sent, or are to be, or
// may have arrived although they failed; and of each whether nobody has begun to send it.
func (db *DB) EachTold(ctx context.Context, channel int64, rules []int64, since job.Micros, told func(id int64, items string, untried bool)) error {
	list, args := In([]any{channel}, rules)
	return db.query(ctx, "read what was told", func(rows *stdsql.Rows) error {
		var (
			id      int64
			items   string
			untried bool
		)
		err := rows.Scan(&id, &items, (*Flag)(&untried))
		told(id, items, untried)
		return err
	}, "SELECT id, items, state = 0 AND attempts = 0 FROM delivery FORCE INDEX (grp) WHERE channel_id = ? AND state IN (0, 1, 2, 3) AND rule_id IN "+list+" AND created >= ?", append(args, int64(since))...)
}

// SuppressDeliveries has messages not be sent that nobody has begun to send. It returns how many of them there were.
func (tx *Tx) SuppressDeliveries(ids []int64, now job.Micros, why string) (int, error) {
	list, args := In([]any{DeliverySuppressed, int64(now), int64(now), Cut(why, 512)}, ids)
	n, err := tx.Exec("suppress deliveries", "UPDATE delivery SET state = ?, next_at = ?, updated = ?, said = ? WHERE id IN "+list+" AND state = 0 AND attempts = 0", args...)
	return int(n), err
}

// TakeRate counts a message to a channel, which takes so many a minute. If that are too many, it tells when it may be
// sent.
func (tx *Tx) TakeRate(channel int64, rate int, now job.Micros) (ok bool, at job.Micros, err error) {
	const minute = 60_000_000
	begun := int64(now) - minute
	n, err := tx.Exec("count message", "UPDATE alert_channel SET window_sent = IF(window_at <= ? OR window_at > ?, 1, window_sent + 1), window_at = IF(window_at <= ? OR window_at > ?, ?, window_at)"+
		" WHERE id = ? AND (window_at <= ? OR window_at > ? OR window_sent < ?)", begun, int64(now), begun, int64(now), int64(now), channel, begun, int64(now), rate)
	if err != nil || n == 1 {
		return n == 1, 0, err
	}
	at = now
	err = tx.query("read window", func(rows *stdsql.Rows) error { return rows.Scan(&at) }, "SELECT window_at + ? FROM alert_channel WHERE id = ?", minute, channel)
	return false, at, err
}

// Postpone has messages that nobody sends wait until an instant.
func (tx *Tx) Postpone(ids []int64, at job.Micros) error {
	if len(ids) == 0 {
		return nil
	}
	list, args := In([]any{int64(at)}, ids)
	_, err := tx.Exec("postpone deliveries", "UPDATE delivery SET next_at = ? WHERE id IN "+list+" AND state = 0", args...)
	return err
}

// ClaimDelivery takes a message to send it, if it is still as it was seen, until an instant from which on others may. It
// returns what it tells by now, or ErrMoved.
func (tx *Tx) ClaimDelivery(seen *DeliveryRow, session uuid.UUID, now, until job.Micros) (DeliveryRow, error) {
	n, err := tx.Exec("claim delivery", "UPDATE delivery SET state = 1, session_id = ?, attempts = attempts + 1, next_at = ?, updated = ? WHERE id = ? AND state = ? AND attempts = ?",
		session[:], int64(until), int64(now), seen.ID, seen.State, seen.Attempts)
	if err == nil && n != 1 {
		err = ErrMoved
	}
	if err != nil {
		return DeliveryRow{}, err
	}
	return tx.oneDelivery("SELECT "+deliveryColumns+" FROM delivery WHERE id = ?", seen.ID)
}

// SettleDelivery writes what became of a message that this session claimed, in its try. It tells whether it was still
// the session's.
func (tx *Tx) SettleDelivery(r *DeliveryRow, session uuid.UUID, state DeliveryState, next, now job.Micros, said string) (bool, error) {
	n, err := tx.Exec("settle delivery", "UPDATE delivery SET state = ?, next_at = ?, updated = ?, said = ? WHERE id = ? AND state = 1 AND session_id = ? AND attempts = ?",
		state, int64(next), int64(now), Cut(said, 512), r.ID, session[:], r.Attempts)
	return n == 1, err
}

// TemplateFailed counts a template that failed.
func (tx *Tx) TemplateFailed() error {
	_, err := tx.Exec("count template", "UPDATE alert_work SET "+Next("template_failures")+" WHERE id = 1")
	return err
}

// AlertByID returns a definition, or ErrNotFound.
func (db *DB) AlertByID(ctx context.Context, t AlertTable, id int64) (AlertRow, error) {
	var out []AlertRow
	err := db.query(ctx, "read "+string(t), alertRows(&out), "SELECT "+t.columns()+" FROM "+string(t)+" WHERE id = ?", id)
	return First(out, err)
}

// DropAlerts removes some of what is over since before an instant: alerts, and messages; those of pings and heartbeats
// since before another instant; silences and streaks. It returns how many rows.
func (db *DB) DropAlerts(ctx context.Context, before, beats job.Micros, limit int) (int64, error) {
	var total int64
	return total, db.Tx(ctx, func(tx *Tx) error {
		total = 0
		for _, q := range []struct {
			query string
			args  []any
		}{
			{"DELETE FROM alert WHERE over_at > 0 AND over_at < ? ORDER BY over_at LIMIT ?", []any{int64(before), limit}},
			{"DELETE FROM delivery WHERE created < ? AND state > 1 ORDER BY created LIMIT ?", []any{int64(before), limit}},
			{"DELETE FROM delivery WHERE created < ? AND state > 1 AND kind IN ('ping', 'heartbeat') ORDER BY created LIMIT ?", []any{int64(beats), limit}},
			{"DELETE FROM alert_silence WHERE until < ? ORDER BY until LIMIT ?", []any{int64(before), limit}},
			{"DELETE FROM alert_streak WHERE updated < ? ORDER BY updated LIMIT ?", []any{int64(before), limit}},
		} {
			n, err := tx.Exec("drop old alerts", q.query, q.args...)
			if err != nil {
				return err
			}
			total += n
		}
		return nil
	})
}
