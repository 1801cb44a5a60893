package alert

import (
	"fmt"
	"strings"
	"time"

	"go-crontab/job"
	"go-crontab/sql"

	"github.com/google/uuid"
)

// DeliveryState is the state of a message.
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

// DeliveryStates holds the names of the states.
var DeliveryStates = []string{"pending", "sending", "sent", "failed", "silenced", "suppressed"}

func (s DeliveryState) String() string {
	if s < 0 || int(s) >= len(DeliveryStates) {
		return fmt.Sprintf("state %d", int8(s))
	}
	return DeliveryStates[s]
}

// Kinds of messages.
const (
	DeliveryOfAlert = "alert"
	DeliveryTest    = "test"
	DeliveryPing    = "ping"
	DeliveryBeat    = "heartbeat"
)

// DeliveryRow is a message: a row of the table delivery.
type DeliveryRow struct {
	ID        int64
	Key       [16]byte // idempotency key; the same in each try
	Kind      string
	ChannelID int64 // 0 for a ping
	Channel   string
	RuleID    int64
	Rule      string
	Target    string // the job owner's address, or the host of a ping
	JobID     int64  // of a ping; 0 for other messages
	State     DeliveryState
	Attempts  int
	NextAt    job.Micros // pending: next try; sending: when other nodes may take it; otherwise: when it ended
	Events    int64
	Items     string // JSON: the first events
	Said      string // answer or error of the last try
	Created   job.Micros
	Updated   job.Micros
}

const deliveryColumns = "id, idem, kind, channel_id, channel, rule_id, rule, target, job_id, " +
	"state, attempts, next_at, events, items, said, created, updated"

func scanDelivery(rows *sql.Rows) (r DeliveryRow, err error) {
	var key []byte
	err = rows.Scan(&r.ID, &key, &r.Kind, &r.ChannelID, &r.Channel, &r.RuleID, &r.Rule, &r.Target, &r.JobID,
		&r.State, &r.Attempts, &r.NextAt, &r.Events, &r.Items, &r.Said, &r.Created, &r.Updated)
	copy(r.Key[:], key)
	return r, err
}

// insertDelivery writes a new message and sets its id.
func insertDelivery(tx *sql.Tx, r *DeliveryRow) (err error) {
	r.ID, err = tx.Insert("insert delivery", `INSERT INTO delivery
		(idem, kind, channel_id, channel, rule_id, rule, target, job_id,
		state, attempts, next_at, events, items, said, created, updated)
		VALUES `+sql.Values(1, 16),
		r.Key[:], r.Kind, r.ChannelID, r.Channel, r.RuleID, r.Rule, r.Target, r.JobID,
		r.State, r.Attempts, int64(r.NextAt), r.Events, r.Items, sql.Cut(r.Said, 512),
		int64(r.Created), int64(r.Updated))
	return err
}

// openDelivery locks and returns a message of a rule to a channel. The message was created after
// since, and no node has tried to send it. If there is none, the error is sql.ErrNotFound.
func openDelivery(tx *sql.Tx, channel, rule int64, target string, since job.Micros) (DeliveryRow, error) {
	return oneDelivery(tx, `SELECT `+deliveryColumns+`
		FROM delivery FORCE INDEX (grp)
		WHERE channel_id = ? AND state = 0 AND rule_id = ? AND target = ?
			AND attempts = 0 AND kind = 'alert' AND created > ?
		ORDER BY id
		LIMIT 1
		FOR UPDATE`,
		channel, rule, target, int64(since))
}

// openPing locks and returns the ping of a job, if no node has tried to send it. If there is none,
// the error is sql.ErrNotFound.
func openPing(tx *sql.Tx, jobID int64) (DeliveryRow, error) {
	return oneDelivery(tx, `SELECT `+deliveryColumns+`
		FROM delivery FORCE INDEX (job)
		WHERE job_id = ? AND state = 0 AND attempts = 0 AND kind = 'ping'
		ORDER BY id
		LIMIT 1
		FOR UPDATE`,
		jobID)
}

// newerPing reports whether the job of a ping has a later ping, in any state.
func newerPing(r sql.Reader, d *DeliveryRow) (bool, error) {
	ids, err := sql.IDs(r, "look for a newer ping", `SELECT id
		FROM delivery FORCE INDEX (job)
		WHERE job_id = ? AND state IN (0, 1, 2, 3, 4, 5) AND id > ? AND kind = 'ping'
		LIMIT 1`,
		d.JobID, d.ID)
	return len(ids) > 0, err
}

func oneDelivery(tx *sql.Tx, query string, args ...any) (DeliveryRow, error) {
	return sql.First(sql.Select(tx, "read delivery", scanDelivery, query, args...))
}

// growDelivery adds events to a message that this transaction has locked.
func growDelivery(tx *sql.Tx, r *DeliveryRow) error {
	_, err := tx.Exec("grow delivery", `UPDATE delivery
		SET events = ?, items = ?, updated = ?, target = ?
		WHERE id = ?`,
		r.Events, r.Items, int64(r.Updated), r.Target, r.ID)
	return err
}

// countOpen counts the pending and sending messages of a channel.
func countOpen(tx *sql.Tx, channel int64) (n int, err error) {
	err = sql.Each(tx, "count open deliveries", func(rows *sql.Rows) error { return rows.Scan(&n) },
		`SELECT COUNT(*)
		FROM delivery FORCE INDEX (grp)
		WHERE channel_id = ? AND state IN (0, 1)`,
		channel)
	return n, err
}

// noteBeat records when the cluster was checked for a heartbeat. If that check sends no heartbeat,
// held says why.
func noteBeat(tx *sql.Tx, channel int64, at job.Micros, held string) error {
	_, err := tx.Exec("write heartbeat", `UPDATE alert_channel
		SET beat_at = ?, held = ?
		WHERE id = ?`,
		int64(at), sql.Cut(held, 512), channel)
	return err
}

// busyLanes are the lanes in which this node is sending. Their messages are not read.
type busyLanes struct {
	Channels []int64
	Pings    []pingLane
	NoPings  bool // no further ping can be sent now
}

// pingLane holds a part of the jobs that ping one host. A host that hangs delays no other host. A
// host that many jobs ping has several lanes.
type pingLane struct {
	Host string // DeliveryRow.Target
	Rest int64  // DeliveryRow.JobID modulo pingsAtHost
}

// pingsAtHost is the number of pings that a node sends to one host at once.
const pingsAtHost = 4

// dueDeliveries lists messages to send: up to limit messages for channels, up to limit pings, and
// up to limit messages that another node claimed but did not send, because it was too late or its
// session has ended. It leaves out busy lanes: otherwise the messages for a channel that hangs
// would fill the list.
//
// The query for channels has job_id = 0, so it reads no pings. The query for pings reads the pings
// that are tried again, and at most one new ping for each job.
func dueDeliveries(r sql.Reader, now job.Micros, busy busyLanes, limit int) ([]DeliveryRow, error) {
	columns := "d." + strings.ReplaceAll(deliveryColumns, ", ", ", d.")

	// Leave out the busy lanes.
	free, lanes := "", []any(nil)
	if len(busy.Channels) > 0 {
		list, ids := sql.In(nil, busy.Channels)
		free, lanes = free+" AND d.channel_id NOT IN "+list, append(lanes, ids...)
	}
	if len(busy.Pings) > 0 {
		pairs := strings.TrimSuffix(strings.Repeat("(?, ?), ", len(busy.Pings)), ", ")
		free += " AND (d.job_id = 0 OR (d.target, d.job_id MOD ?) NOT IN (" + pairs + "))"
		lanes = append(lanes, pingsAtHost)
		for _, p := range busy.Pings {
			lanes = append(lanes, p.Host, p.Rest)
		}
	}

	// One query for each kind of message.
	var parts []string
	var args []any
	read := func(index, cond, order string) {
		parts = append(parts, `(SELECT `+columns+`
			FROM delivery d FORCE INDEX (`+index+`)
			WHERE `+cond+free+order+`
			LIMIT ?)`)
		args = append(append(append(args, int64(now)), lanes...), limit)
	}

	read("job", "d.job_id = 0 AND d.state = 0 AND d.next_at <= ?", " ORDER BY d.next_at, d.id")
	if !busy.NoPings {
		read("due", "d.state = 0 AND d.next_at <= ? AND d.job_id > 0", " ORDER BY d.next_at")
	}
	read("due", `d.state = 1
		AND (d.next_at <= ? OR NOT EXISTS (SELECT 1 FROM session s WHERE s.id = d.session_id))`, "")
	return sql.Select(r, "list due deliveries", scanDelivery, strings.Join(parts, " UNION ALL "), args...)
}

// earlierDelivery looks for earlier pending or sending messages of the same rule to the same
// channel whose items contain a text. It returns the latest time at which such a message is tried
// next or becomes free. It returns zero if there is no such message.
func earlierDelivery(r sql.Reader, d *DeliveryRow, text string) (at job.Micros, err error) {
	err = sql.Each(r, "look for earlier deliveries", func(rows *sql.Rows) error { return rows.Scan(&at) },
		`SELECT COALESCE(MAX(next_at), 0)
		FROM delivery FORCE INDEX (grp)
		WHERE channel_id = ? AND state IN (0, 1) AND rule_id = ? AND id < ? AND LOCATE(?, items) > 0`,
		d.ChannelID, d.RuleID, d.ID, text)
	return at, err
}

// eachSent reads the messages of several rules to a channel that were created since an instant.
// Pending messages are included. Failed messages are, too, because they may have arrived. untried
// says that no node has tried to send the message.
//
// Newer messages have higher ids, apart from small differences between nodes' clocks. So the query
// has a lower bound for ids, and does not read everything that the rules have ever sent.
func eachSent(
	r sql.Reader, channel int64, rules []int64, since job.Micros,
	visit func(id int64, items string, untried bool),
) error {
	first, err := sql.IDs(r, "look for the first message", `SELECT id
		FROM delivery FORCE INDEX (created)
		WHERE created >= ?
		ORDER BY created
		LIMIT 1`,
		int64(since.Add(-time.Minute)))
	if err != nil || len(first) == 0 {
		return err
	}

	list, args := sql.In([]any{channel}, rules)
	return sql.Each(r, "read sent incidents", func(rows *sql.Rows) error {
		var (
			id      int64
			items   string
			untried bool
		)
		err := rows.Scan(&id, &items, (*sql.Flag)(&untried))
		visit(id, items, untried)
		return err
	}, `SELECT id, items, state = 0 AND attempts = 0
		FROM delivery FORCE INDEX (grp)
		WHERE channel_id = ? AND state IN (0, 1, 2, 3) AND rule_id IN `+list+` AND id >= ? AND created >= ?`,
		append(args, first[0], int64(since))...)
}

// suppressDeliveries gives up those of the messages that no node has tried to send. It returns
// their number.
func suppressDeliveries(tx *sql.Tx, ids []int64, now job.Micros, why string) (int, error) {
	list, args := sql.In([]any{DeliverySuppressed, int64(now), int64(now), sql.Cut(why, 512)}, ids)
	n, err := tx.Exec("suppress deliveries", `UPDATE delivery
		SET state = ?, next_at = ?, updated = ?, said = ?
		WHERE id IN `+list+` AND state = 0 AND attempts = 0`,
		args...)
	return int(n), err
}

// takeRate counts a message against the channel's limit of rate messages a minute. If the channel
// is at the limit, ok is false, and at is the time from which the message may be sent.
func takeRate(tx *sql.Tx, channel int64, rate int, now job.Micros) (ok bool, at job.Micros, err error) {
	const minute = 60_000_000
	begun := int64(now) - minute
	n, err := tx.Exec("count message", `UPDATE alert_channel
		SET window_sent = IF(window_at <= ? OR window_at > ?, 1, window_sent + 1),
			window_at = IF(window_at <= ? OR window_at > ?, ?, window_at)
		WHERE id = ? AND (window_at <= ? OR window_at > ? OR window_sent < ?)`,
		begun, int64(now), begun, int64(now), int64(now), channel, begun, int64(now), rate)
	if err != nil || n == 1 {
		return n == 1, 0, err
	}

	at = now
	err = sql.Each(tx, "read window", func(rows *sql.Rows) error { return rows.Scan(&at) },
		"SELECT window_at + ? FROM alert_channel WHERE id = ?", minute, channel)
	return false, at, err
}

// postpone makes pending messages wait until an instant.
func postpone(tx *sql.Tx, ids []int64, at job.Micros) error {
	if len(ids) == 0 {
		return nil
	}
	list, args := sql.In([]any{int64(at)}, ids)
	_, err := tx.Exec("postpone deliveries",
		"UPDATE delivery SET next_at = ? WHERE id IN "+list+" AND state = 0", args...)
	return err
}

// claimDelivery claims a message for this session. If the row has changed since seen was read, the
// error is sql.ErrMoved. From until on, other nodes may claim the message. The returned row has
// all events that have joined the message so far.
func claimDelivery(tx *sql.Tx, seen *DeliveryRow, session uuid.UUID, now, until job.Micros) (DeliveryRow, error) {
	n, err := tx.Exec("claim delivery", `UPDATE delivery
		SET state = 1, session_id = ?, attempts = attempts + 1, next_at = ?, updated = ?
		WHERE id = ? AND state = ? AND attempts = ?`,
		session[:], int64(until), int64(now), seen.ID, seen.State, seen.Attempts)
	if err == nil && n != 1 {
		err = sql.ErrMoved
	}
	if err != nil {
		return DeliveryRow{}, err
	}
	return oneDelivery(tx, "SELECT "+deliveryColumns+" FROM delivery WHERE id = ?", seen.ID)
}

// settleDelivery records the result of a try of this session. It reports whether the message still
// belonged to this try.
func settleDelivery(
	tx *sql.Tx, r *DeliveryRow, session uuid.UUID, state DeliveryState, next, now job.Micros, said string,
) (bool, error) {
	n, err := tx.Exec("settle delivery", `UPDATE delivery
		SET state = ?, next_at = ?, updated = ?, said = ?
		WHERE id = ? AND state = 1 AND session_id = ? AND attempts = ?`,
		state, int64(next), int64(now), sql.Cut(said, 512), r.ID, session[:], r.Attempts)
	return n == 1, err
}
