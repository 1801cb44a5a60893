package alert

import (
	"fmt"
	"strings"

	"go-crontab/job"
	"go-crontab/sql"

	"github.com/google/uuid"
)

// DeliveryState is where a message is.
type DeliveryState int8

// The states.
const (
	DeliveryPending DeliveryState = iota
	DeliverySending
	DeliverySent
	DeliveryFailed
	DeliverySilenced
	DeliverySuppressed
)

// DeliveryStates are their names.
var DeliveryStates = []string{"pending", "sending", "sent", "failed", "silenced", "suppressed"}

func (s DeliveryState) String() string {
	if s < 0 || int(s) >= len(DeliveryStates) {
		return fmt.Sprintf("state %d", int8(s))
	}
	return DeliveryStates[s]
}

// What messages are.
const (
	DeliveryOfAlert = "alert"
	DeliveryTest    = "test"
	DeliveryPing    = "ping"
	DeliveryBeat    = "heartbeat"
)

// DeliveryRow is a message.
type DeliveryRow struct {
	ID        int64
	Key       [16]byte
	Kind      string
	ChannelID int64
	Channel   string
	RuleID    int64
	Rule      string
	Target    string
	JobID     int64
	State     DeliveryState
	Attempts  int
	NextAt    job.Micros
	Events    int64
	Items     string // JSON
	Said      string
	Created   job.Micros
	Updated   job.Micros
}

const deliveryColumns = "id, idem, kind, channel_id, channel, rule_id, rule, target, job_id, state, attempts, next_at, events, items, said, created, updated"

func scanDelivery(rows *sql.Rows) (r DeliveryRow, err error) {
	var key []byte
	err = rows.Scan(&r.ID, &key, &r.Kind, &r.ChannelID, &r.Channel, &r.RuleID, &r.Rule, &r.Target, &r.JobID, &r.State, &r.Attempts, &r.NextAt, &r.Events, &r.Items, &r.Said,
		&r.Created, &r.Updated)
	copy(r.Key[:], key)
	return r, err
}

// insertDelivery writes a message.
func insertDelivery(tx *sql.Tx, r *DeliveryRow) (err error) {
	r.ID, err = tx.Insert("insert delivery", "INSERT INTO delivery (idem, kind, channel_id, channel, rule_id, rule, target, job_id, state, attempts, next_at, events, items, said, created, updated) VALUES "+
		sql.Values(1, 16), r.Key[:], r.Kind, r.ChannelID, r.Channel, r.RuleID, r.Rule, r.Target, r.JobID, r.State, r.Attempts, int64(r.NextAt), r.Events, r.Items, sql.Cut(r.Said, 512),
		int64(r.Created), int64(r.Updated))
	return err
}

// openDelivery locks and returns the message of a rule to a channel that nobody has begun to send and that was made behind
// an instant, or sql.ErrNotFound.
func openDelivery(tx *sql.Tx, channel, rule int64, target string, since job.Micros) (DeliveryRow, error) {
	return oneDelivery(tx, "SELECT "+deliveryColumns+" FROM delivery FORCE INDEX (grp) WHERE channel_id = ? AND state = 0 AND rule_id = ? AND target = ? AND attempts = 0 AND kind = 'alert' AND created > ? ORDER BY id LIMIT 1 FOR UPDATE",
		channel, rule, target, int64(since))
}

// openPing locks and returns the ping of a job that nobody has begun to send, or sql.ErrNotFound.
func openPing(tx *sql.Tx, jobID int64) (DeliveryRow, error) {
	return oneDelivery(tx, "SELECT "+deliveryColumns+" FROM delivery FORCE INDEX (job) WHERE job_id = ? AND state = 0 AND attempts = 0 AND kind = 'ping' ORDER BY id LIMIT 1 FOR UPDATE", jobID)
}

// newerPing tells whether a job has a ping that was made behind one, whatever has become of it.
func newerPing(r sql.Reader, d *DeliveryRow) (bool, error) {
	ids, err := sql.IDs(r, "look for a newer ping", "SELECT id FROM delivery FORCE INDEX (job) WHERE job_id = ? AND state IN (0, 1, 2, 3, 4, 5) AND id > ? AND kind = 'ping' LIMIT 1", d.JobID, d.ID)
	return len(ids) > 0, err
}

func oneDelivery(tx *sql.Tx, query string, args ...any) (DeliveryRow, error) {
	return sql.First(sql.Select(tx, "read delivery", scanDelivery, query, args...))
}

// growDelivery has a message that this transaction has locked tell of more.
func growDelivery(tx *sql.Tx, r *DeliveryRow) error {
	_, err := tx.Exec("grow delivery", "UPDATE delivery SET events = ?, items = ?, updated = ?, target = ? WHERE id = ?", r.Events, r.Items, int64(r.Updated), r.Target, r.ID)
	return err
}

// countOpen counts the messages to a channel that are neither sent nor given up.
func countOpen(tx *sql.Tx, channel int64) (n int, err error) {
	err = sql.Each(tx, "count open deliveries", func(rows *sql.Rows) error { return rows.Scan(&n) },
		"SELECT COUNT(*) FROM delivery FORCE INDEX (grp) WHERE channel_id = ? AND state IN (0, 1)", channel)
	return n, err
}

// noteBeat writes that a heartbeat was looked at, and why nothing is sent.
func noteBeat(tx *sql.Tx, channel int64, at job.Micros, held string) error {
	_, err := tx.Exec("write heartbeat", "UPDATE alert_channel SET beat_at = ?, held = ? WHERE id = ?", int64(at), sql.Cut(held, 512), channel)
	return err
}

// busyLanes are the messages that are not asked for, because others like them are being sent.
type busyLanes struct {
	Channels []int64
	Pings    []pingLane
	NoPings  bool // as many are called as may be at once
}

// pingLane are the pings to a host, of some jobs: a host that hangs holds up nobody else, and one that all jobs call is
// called for several of them at once.
type pingLane struct {
	Host string // DeliveryRow.Target
	Rest int64  // that the job's id leaves when it is divided by PingsAtHost
}

// pingsAtHost is how many pings are called at once at a host, by a node.
const pingsAtHost = 4

// dueDeliveries lists messages that are to be sent, up to limit to channels and as many pings, and those that somebody did
// not send in time, or who is gone. What is busy is left out here: a channel that hangs would fill the list with what
// waits for it.
//
// What waits for channels is read by job_id = 0, past no ping. Of pings no more are passed than there are jobs with one,
// and those that are tried again.
func dueDeliveries(r sql.Reader, now job.Micros, busy busyLanes, limit int) ([]DeliveryRow, error) {
	columns := "d." + strings.ReplaceAll(deliveryColumns, ", ", ", d.")
	free, lanes := "", []any(nil)
	if len(busy.Channels) > 0 {
		list, ids := sql.In(nil, busy.Channels)
		free, lanes = free+" AND d.channel_id NOT IN "+list, append(lanes, ids...)
	}
	if len(busy.Pings) > 0 {
		free += " AND (d.job_id = 0 OR (d.target, d.job_id MOD ?) NOT IN (" + strings.TrimSuffix(strings.Repeat("(?, ?), ", len(busy.Pings)), ", ") + "))"
		lanes = append(lanes, pingsAtHost)
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
	return sql.Select(r, "list due deliveries", scanDelivery, strings.Join(parts, " UNION ALL "), args...)
}

// earlierDelivery looks for messages of the same rule to the same channel that were made before one, have a text in their
// items, and are neither sent nor given up. It returns when the last of them is tried next, or free again; zero: there is
// none.
func earlierDelivery(r sql.Reader, d *DeliveryRow, text string) (at job.Micros, err error) {
	err = sql.Each(r, "look for earlier deliveries", func(rows *sql.Rows) error { return rows.Scan(&at) },
		"SELECT COALESCE(MAX(next_at), 0) FROM delivery FORCE INDEX (grp) WHERE channel_id = ? AND state IN (0, 1) AND rule_id = ? AND id < ? AND LOCATE(?, items) > 0",
		d.ChannelID, d.RuleID, d.ID, text)
	return at, err
}

// eachTold reads the messages of some rules to a channel that were made since an instant, and were sent, or are to be, or
// may have arrived although they failed; and of each whether nobody has begun to send it.
func eachTold(r sql.Reader, channel int64, rules []int64, since job.Micros, told func(id int64, items string, untried bool)) error {
	list, args := sql.In([]any{channel}, rules)
	return sql.Each(r, "read what was told", func(rows *sql.Rows) error {
		var (
			id      int64
			items   string
			untried bool
		)
		err := rows.Scan(&id, &items, (*sql.Flag)(&untried))
		told(id, items, untried)
		return err
	}, "SELECT id, items, state = 0 AND attempts = 0 FROM delivery FORCE INDEX (grp) WHERE channel_id = ? AND state IN (0, 1, 2, 3) AND rule_id IN "+list+" AND created >= ?", append(args, int64(since))...)
}

// suppressDeliveries has messages not be sent that nobody has begun to send. It returns how many of them there were.
func suppressDeliveries(tx *sql.Tx, ids []int64, now job.Micros, why string) (int, error) {
	list, args := sql.In([]any{DeliverySuppressed, int64(now), int64(now), sql.Cut(why, 512)}, ids)
	n, err := tx.Exec("suppress deliveries", "UPDATE delivery SET state = ?, next_at = ?, updated = ?, said = ? WHERE id IN "+list+" AND state = 0 AND attempts = 0", args...)
	return int(n), err
}

// takeRate counts a message to a channel, which takes so many a minute. If that are too many, it tells when it may be
// sent.
func takeRate(tx *sql.Tx, channel int64, rate int, now job.Micros) (ok bool, at job.Micros, err error) {
	const minute = 60_000_000
	begun := int64(now) - minute
	n, err := tx.Exec("count message", "UPDATE alert_channel SET window_sent = IF(window_at <= ? OR window_at > ?, 1, window_sent + 1), window_at = IF(window_at <= ? OR window_at > ?, ?, window_at)"+
		" WHERE id = ? AND (window_at <= ? OR window_at > ? OR window_sent < ?)", begun, int64(now), begun, int64(now), int64(now), channel, begun, int64(now), rate)
	if err != nil || n == 1 {
		return n == 1, 0, err
	}
	at = now
	err = sql.Each(tx, "read window", func(rows *sql.Rows) error { return rows.Scan(&at) }, "SELECT window_at + ? FROM alert_channel WHERE id = ?", minute, channel)
	return false, at, err
}

// postpone has messages that nobody sends wait until an instant.
func postpone(tx *sql.Tx, ids []int64, at job.Micros) error {
	if len(ids) == 0 {
		return nil
	}
	list, args := sql.In([]any{int64(at)}, ids)
	_, err := tx.Exec("postpone deliveries", "UPDATE delivery SET next_at = ? WHERE id IN "+list+" AND state = 0", args...)
	return err
}

// claimDelivery takes a message to send it, if it is still as it was seen, until an instant from which on others may. It
// returns what it tells by now, or sql.ErrMoved.
func claimDelivery(tx *sql.Tx, seen *DeliveryRow, session uuid.UUID, now, until job.Micros) (DeliveryRow, error) {
	n, err := tx.Exec("claim delivery", "UPDATE delivery SET state = 1, session_id = ?, attempts = attempts + 1, next_at = ?, updated = ? WHERE id = ? AND state = ? AND attempts = ?",
		session[:], int64(until), int64(now), seen.ID, seen.State, seen.Attempts)
	if err == nil && n != 1 {
		err = sql.ErrMoved
	}
	if err != nil {
		return DeliveryRow{}, err
	}
	return oneDelivery(tx, "SELECT "+deliveryColumns+" FROM delivery WHERE id = ?", seen.ID)
}

// settleDelivery writes what became of a message that this session claimed, in its try. It tells whether it was still
// the session's.
func settleDelivery(tx *sql.Tx, r *DeliveryRow, session uuid.UUID, state DeliveryState, next, now job.Micros, said string) (bool, error) {
	n, err := tx.Exec("settle delivery", "UPDATE delivery SET state = ?, next_at = ?, updated = ?, said = ? WHERE id = ? AND state = 1 AND session_id = ? AND attempts = ?",
		state, int64(next), int64(now), sql.Cut(said, 512), r.ID, session[:], r.Attempts)
	return n == 1, err
}
