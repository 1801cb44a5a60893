package sql

import (
	"context"
	stdsql "database/sql"
	"fmt"
	"slices"
	"strings"

	"go-crontab/job"
)

// AlertTable is where definitions of one kind stand: those of channels, or those of rules.
type AlertTable string

// The tables.
const (
	AlertChannels AlertTable = "alert_channel"
	AlertRules    AlertTable = "alert_rule"
)

// AlertRow is a channel or a rule as its row has it.
type AlertRow struct {
	ID, Version      int64
	Name             string
	Spec             string // JSON
	Created, Updated job.Micros
	By               string

	// Of a channel.
	Beat job.Micros // of a heartbeat: when it was last looked at
	Held string     // and why nothing was sent then
}

const alertColumns = "id, version, name, spec, created, updated, who"

func (t AlertTable) columns() string {
	if t == AlertChannels {
		return alertColumns + ", beat_at, held"
	}
	return alertColumns + ", 0, ''"
}

func alertRows(out *[]AlertRow) func(*stdsql.Rows) error {
	return func(rows *stdsql.Rows) error {
		var r AlertRow
		err := rows.Scan(&r.ID, &r.Version, &r.Name, &r.Spec, &r.Created, &r.Updated, &r.By, &r.Beat, &r.Held)
		*out = append(*out, r)
		return err
	}
}

// AlertRows lists definitions by id.
func (db *DB) AlertRows(ctx context.Context, t AlertTable, after int64, limit int) (out []AlertRow, err error) {
	err = db.query(ctx, "list "+string(t), alertRows(&out), "SELECT "+t.columns()+" FROM "+string(t)+" WHERE id > ? ORDER BY id LIMIT ?", after, limit)
	return out, err
}

// AlertNamed returns the definition of a name, or ErrNotFound.
func (db *DB) AlertNamed(ctx context.Context, t AlertTable, name string) (AlertRow, error) {
	found, err := db.AlertsNamed(ctx, t, []string{name})
	if r, there := found[name]; there || err != nil {
		return r, err
	}
	return AlertRow{}, ErrNotFound
}

// AlertsNamed returns those of some definitions that there are.
func (db *DB) AlertsNamed(ctx context.Context, t AlertTable, names []string) (map[string]AlertRow, error) {
	if len(names) == 0 {
		return map[string]AlertRow{}, nil
	}
	var out []AlertRow
	list, args := In(nil, names)
	err := db.query(ctx, "read "+string(t), alertRows(&out), "SELECT "+t.columns()+" FROM "+string(t)+" WHERE name IN "+list, args...)
	return byName(out), err
}

func byName(rows []AlertRow) map[string]AlertRow {
	out := make(map[string]AlertRow, len(rows))
	for _, r := range rows {
		out[r.Name] = r
	}
	return out
}

// LockAlerts locks those of some definitions that there are. Channels are locked before rules, and both after all else
// but the audit.
func (tx *Tx) LockAlerts(t AlertTable, names []string) (map[string]AlertRow, error) {
	return tx.alertsLocked(t, names, "FOR UPDATE")
}

// ShareAlerts keeps others from deleting or changing definitions until this transaction is over.
func (tx *Tx) ShareAlerts(t AlertTable, names []string) (map[string]AlertRow, error) {
	return tx.alertsLocked(t, names, "LOCK IN SHARE MODE")
}

func (tx *Tx) alertsLocked(t AlertTable, names []string, how string) (map[string]AlertRow, error) {
	if len(names) == 0 {
		return map[string]AlertRow{}, nil
	}
	var out []AlertRow
	list, args := In(nil, names)
	err := tx.query("lock "+string(t), alertRows(&out), "SELECT "+t.columns()+" FROM "+string(t)+" FORCE INDEX (name) WHERE name IN "+list+" ORDER BY name "+how, args...)
	return byName(out), err
}

// AllAlerts reads all definitions as they are now.
func (tx *Tx) AllAlerts(t AlertTable) (out []AlertRow, err error) {
	err = tx.query("read "+string(t), alertRows(&out), "SELECT "+t.columns()+" FROM "+string(t)+" ORDER BY id LOCK IN SHARE MODE")
	return out, err
}

// InsertAlert writes a definition and sets its id. A name that is taken is ErrExists.
func (tx *Tx) InsertAlert(t AlertTable, r *AlertRow) (err error) {
	r.ID, err = tx.Insert("insert definition of alerts", "INSERT INTO "+string(t)+" (name, version, spec, created, updated, who) VALUES (?, 1, ?, ?, ?, ?)",
		r.Name, r.Spec, int64(r.Created), int64(r.Updated), Cut(r.By, 128))
	if IsDuplicate(err) {
		return fmt.Errorf("%s %q: %w", t, r.Name, ErrExists)
	}
	if err != nil {
		return err
	}
	r.Version = 1
	return tx.alertsChanged()
}

// UpdateAlert writes another definition of what this transaction has locked.
func (tx *Tx) UpdateAlert(t AlertTable, r *AlertRow) error {
	r.Version++
	if _, err := tx.Exec("update "+string(t), "UPDATE "+string(t)+" SET version = version + 1, spec = ?, updated = ?, who = ? WHERE id = ?",
		r.Spec, int64(r.Updated), Cut(r.By, 128), r.ID); err != nil {
		return err
	}
	return tx.alertsChanged()
}

// DeleteAlert deletes a definition that this transaction has locked.
func (tx *Tx) DeleteAlert(t AlertTable, id int64) error {
	if _, err := tx.Exec("delete "+string(t), "DELETE FROM "+string(t)+" WHERE id = ?", id); err != nil {
		return err
	}
	return tx.alertsChanged()
}

// alertsChanged tells whoever evaluates rules to read them again.
func (tx *Tx) alertsChanged() error {
	_, err := tx.Exec("count changes of alerts", "UPDATE alert_work SET "+Next("n")+" WHERE id = 2")
	return err
}

const silenceColumns = "id, app, job, rule, until, reason, who, created"

func silenceRows(out *[]job.Silence) func(*stdsql.Rows) error {
	return func(rows *stdsql.Rows) error {
		var s job.Silence
		err := rows.Scan(&s.ID, &s.App, &s.Job, &s.Rule, &s.Until, &s.Reason, &s.Who, &s.Created)
		*out = append(*out, s)
		return err
	}
}

// Silences lists the silences that end after an instant, by id.
func (db *DB) Silences(ctx context.Context, until job.Micros, after int64, limit int) (out []job.Silence, err error) {
	err = db.query(ctx, "list silences", silenceRows(&out), "SELECT "+silenceColumns+" FROM alert_silence WHERE id > ? AND until > ? ORDER BY id LIMIT ?", after, int64(until), limit)
	return out, err
}

// Silence returns a silence, or ErrNotFound.
func (db *DB) Silence(ctx context.Context, id int64) (job.Silence, error) {
	var out []job.Silence
	err := db.query(ctx, "read silence", silenceRows(&out), "SELECT "+silenceColumns+" FROM alert_silence WHERE id = ?", id)
	return First(out, err)
}

// CountSilences tells how many silences end after an instant.
func (tx *Tx) CountSilences(now job.Micros) (n int, err error) {
	err = tx.query("count silences", func(rows *stdsql.Rows) error { return rows.Scan(&n) }, "SELECT COUNT(*) FROM alert_silence WHERE until > ?", int64(now))
	return n, err
}

// InsertSilence writes a silence and sets its id.
func (tx *Tx) InsertSilence(s *job.Silence) (err error) {
	s.ID, err = tx.Insert("insert silence", "INSERT INTO alert_silence (app, job, rule, until, reason, who, created) VALUES (?, ?, ?, ?, ?, ?, ?)",
		s.App, s.Job, s.Rule, int64(s.Until), s.Reason, Cut(s.Who, 128), int64(s.Created))
	if err != nil {
		return err
	}
	return tx.alertsChanged()
}

// LockSilence locks and returns a silence, or ErrNotFound.
func (tx *Tx) LockSilence(id int64) (job.Silence, error) {
	var out []job.Silence
	err := tx.query("lock silence", silenceRows(&out), "SELECT "+silenceColumns+" FROM alert_silence WHERE id = ? FOR UPDATE", id)
	return First(out, err)
}

// EndSilence has a silence that this transaction has locked end at an instant.
func (tx *Tx) EndSilence(id int64, at job.Micros) error {
	if _, err := tx.Exec("end silence", "UPDATE alert_silence SET until = ? WHERE id = ?", int64(at), id); err != nil {
		return err
	}
	return tx.alertsChanged()
}

// FiredRow is an alert that fires, or did.
type FiredRow struct {
	ID       int64
	Subject  [16]byte
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
	Told     job.Micros // when a message about it was last made; zero: none was
	Silence  int64      // which kept it from being told; zero: none does
	Over     job.Micros
	Why      string // why it is over
}

const firedColumns = "id, subject, firing IS NOT NULL, rule_id, rule, event, severity, app, job_id, job, owner, node, run, summary, first_at, last_at, seen, told_at, silence_id, over_at, over_why"

func firedRows(out *[]FiredRow) func(*stdsql.Rows) error {
	return func(rows *stdsql.Rows) error {
		var (
			r       FiredRow
			subject []byte
		)
		err := rows.Scan(&r.ID, &subject, &r.Firing, &r.RuleID, &r.Rule, &r.Event, &r.Severity, &r.App, &r.JobID, &r.Job, &r.Owner, &r.Node, &r.Run, &r.Summary,
			&r.First, &r.Last, &r.Seen, &r.Told, &r.Silence, &r.Over, &r.Why)
		copy(r.Subject[:], subject)
		*out = append(*out, r)
		return err
	}
}

// Open tells whether whoever may see anything may see an alert: it is about the cluster, and names no job. One that counts
// failures of jobs of several apps names the last of them.
func (r *FiredRow) Open() bool { return r.App == "" && r.Event != job.AlertFailures }

// openOrOfApp is that of alerts which are of an app as well.
var openOrOfApp = condition{"app <> '' OR event <> ?", []any{job.AlertFailures}}

// FiredFilter says which alerts to list. Zero fields do not restrict.
type FiredFilter struct {
	App    string
	Apps   []string // only of these apps, and what is open; nil: all
	JobID  int64
	Rule   string
	Firing *bool
	Before int64 // only ids before it
	Limit  int
}

// alertWay is an index to read a list of alerts or of messages from.
type alertWay struct {
	index string
	by    string      // what the list is ordered by before the id, the latest first; "": by the id alone
	given bool        // the filter has what it is by
	each  []condition // a leg for each
}

// alertPlace is a place in such a list. Due is what the list is ordered by before the id.
type alertPlace struct {
	ListPlace
	fits bool
}

// Fired lists alerts, the latest first. A page that meets few that fit ends before it is full; next is where it goes on,
// zero at the end.
func (db *DB) Fired(ctx context.Context, f FiredFilter) (out []FiredRow, next int64, err error) {
	if f.App != "" && f.Apps != nil && !slices.Contains(f.Apps, f.App) {
		return nil, 0, nil
	}
	fires, over := f.Firing != nil && *f.Firing, f.Firing != nil && !*f.Firing
	ways := []alertWay{
		{"job", "", f.JobID != 0, []condition{{"job_id = ?", []any{f.JobID}}}},
		{"firing", "", fires, []condition{{"firing = 1", nil}}},
		{"app", "", f.App != "", []condition{{"app = ?", []any{f.App}}}},
		{"app", "", f.Apps != nil && len(f.Apps) <= manyAppsOfAudit, oneEach("app = ?", append([]string{""}, f.Apps...))},
		{"firing", "", over, []condition{{"firing IS NULL", nil}}},
	}
	way, left := wayOf(ways)
	if f.Apps != nil {
		left = append(left, openOrOfApp)
	}
	if len(f.Apps) > manyAppsOfAudit {
		cond, args := ofApps("app", append([]string{""}, f.Apps...))
		left = append(left, condition{cond, args})
	}
	if f.Rule != "" {
		left = append(left, condition{"rule = ?", []any{f.Rule}})
	}
	var after *ListPlace
	if f.Before != 0 {
		after = &ListPlace{ID: f.Before}
	}
	ids, last, err := db.alertPlaces(ctx, "alert", way, left, after, f.Limit)
	if err != nil {
		return nil, 0, err
	}
	if last != nil {
		next = last.ID
	}
	out, err = db.FiredByIDs(ctx, ids)
	slices.Reverse(out)
	return out, next, err
}

// wayOf picks the first way that is given, or else the order of the ids, and returns what the ways behind it leave to be
// looked at.
func wayOf(ways []alertWay) (way alertWay, left []condition) {
	way = alertWay{index: "PRIMARY", each: []condition{{"TRUE", nil}}}
	at := slices.IndexFunc(ways, func(w alertWay) bool { return w.given })
	if at < 0 {
		return way, nil
	}
	for _, other := range ways[at+1:] {
		if other.given {
			left = append(left, anyOf(other.each))
		}
	}
	return ways[at], left
}

// alertPlaces returns the ids of a page of a list, and where it goes on, nil at the end. It looks at what a way leads to
// until the page is full, or at so much that the next page must go on.
func (db *DB) alertPlaces(ctx context.Context, table string, way alertWay, left []condition, after *ListPlace, limit int) (ids []int64, next *ListPlace, err error) {
	at, order := "0", "id DESC"
	if way.by != "" {
		at, order = way.by, way.by+" DESC, id DESC"
	}
	fits := allOf(left)
	all := &legs[alertPlace]{reader: db.Reader(ctx), what: "list " + table, columns: "id, " + at + ", COALESCE(" + fits.sql + ", FALSE)", columnArgs: fits.args,
		less: func(a, b alertPlace) bool { return a.Due > b.Due || a.Due == b.Due && a.ID > b.ID },
		scan: func(rows *stdsql.Rows, e *alertPlace, i *int) error { return rows.Scan(i, &e.ID, &e.Due, &e.fits) }}
	for _, one := range way.each {
		g := &leg[alertPlace]{from: table + " FORCE INDEX (" + way.index + ")", where: one.sql, args: one.args, by: order,
			after: func(e alertPlace) (string, []any) {
				if way.by == "" {
					return "id < ?", []any{e.ID}
				}
				return at + " <= ? AND (" + at + " < ? OR id < ?)", []any{int64(e.Due), int64(e.Due), e.ID}
			}}
		if after != nil {
			g.last = &alertPlace{ListPlace: *after}
		}
		all.all = append(all.all, g)
	}
	found, last, err := search(all, limit, func(e alertPlace) bool { return e.fits })
	if err != nil {
		return nil, nil, err
	}
	for _, e := range found {
		ids = append(ids, e.ID)
	}
	if last != nil {
		next = &last.ListPlace
	}
	return ids, next, nil
}

// FiredByID returns an alert, or ErrNotFound.
func (db *DB) FiredByID(ctx context.Context, id int64) (FiredRow, error) {
	var out []FiredRow
	err := db.query(ctx, "read alert", firedRows(&out), "SELECT "+firedColumns+" FROM alert WHERE id = ?", id)
	return First(out, err)
}

// Firing lists what fires, by id.
func (db *DB) Firing(ctx context.Context, limit int) (out []FiredRow, err error) {
	err = db.query(ctx, "list what fires", firedRows(&out), "SELECT "+firedColumns+" FROM alert FORCE INDEX (firing) WHERE firing = 1 ORDER BY id LIMIT ?", limit)
	return out, err
}

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

func deliveryRows(out *[]DeliveryRow) func(*stdsql.Rows) error {
	return func(rows *stdsql.Rows) error {
		var (
			r   DeliveryRow
			key []byte
		)
		err := rows.Scan(&r.ID, &key, &r.Kind, &r.ChannelID, &r.Channel, &r.RuleID, &r.Rule, &r.Target, &r.JobID, &r.State, &r.Attempts, &r.NextAt, &r.Events, &r.Items, &r.Said,
			&r.Created, &r.Updated)
		copy(r.Key[:], key)
		*out = append(*out, r)
		return err
	}
}

// DeliveryFilter says which messages to list. Zero fields do not restrict.
type DeliveryFilter struct {
	Channel string
	Rule    string
	State   *DeliveryState
	After   *ListPlace // only what the list has after this place
	Limit   int
}

// Deliveries lists messages, the latest first: by when they were made, or those of a state by when they came into it. A
// page that meets few that fit ends before it is full; next is where it goes on, nil at the end.
//
// Most messages are pings of jobs, which have neither a channel nor a rule, and most are sent.
func (db *DB) Deliveries(ctx context.Context, f DeliveryFilter) (out []DeliveryRow, next *ListPlace, err error) {
	var ways []alertWay
	if f.State != nil {
		ways = []alertWay{{"due", "next_at", true, []condition{{"state = ?", []any{*f.State}}}}}
	}
	kinds := []string{DeliveryOfAlert, DeliveryTest, DeliveryBeat}
	if f.Rule != "" {
		kinds = kinds[:1]
	}
	byKind := alertWay{"kind", "created", f.Channel != "" || f.Rule != "", oneEach("kind = ?", kinds)}
	if f.State != nil && *f.State == DeliverySent {
		ways = append([]alertWay{byKind}, ways...)
	} else {
		ways = append(ways, byKind)
	}
	way, left := wayOf(ways)
	if f.Channel != "" {
		left = append(left, condition{"channel = ?", []any{f.Channel}})
	}
	if f.Rule != "" {
		left = append(left, condition{"rule = ?", []any{f.Rule}})
	}
	ids, next, err := db.alertPlaces(ctx, "delivery", way, left, f.After, f.Limit)
	if err != nil || len(ids) == 0 {
		return nil, next, err
	}
	list, args := In(nil, ids)
	err = db.query(ctx, "read deliveries", deliveryRows(&out), "SELECT "+deliveryColumns+" FROM delivery FORCE INDEX (PRIMARY) WHERE id IN "+list, args...)
	slices.SortFunc(out, func(a, b DeliveryRow) int { return slices.Index(ids, a.ID) - slices.Index(ids, b.ID) })
	return out, next, err
}

// AlertCounts is what is known about alerts as a whole.
type AlertCounts struct {
	Firing    int64
	States    map[string]int64 // messages by their states, of each up to CountedMost
	Lost      int64            // what could not be told, because there was too much of it
	Templates int64            // templates that failed
}

// CountedMost is up to how many messages of one state are counted.
const CountedMost = 10_000

// AlertCounts counts.
func (db *DB) AlertCounts(ctx context.Context) (AlertCounts, error) {
	c := AlertCounts{States: map[string]int64{}}
	err := db.query(ctx, "count alerts", func(rows *stdsql.Rows) error { return rows.Scan(&c.Firing, &c.Lost, &c.Templates) },
		"SELECT (SELECT COUNT(*) FROM alert WHERE firing = 1), lost, template_failures FROM alert_work WHERE id = 1")
	if err != nil {
		return c, err
	}
	parts, args := make([]string, len(DeliveryStates)), []any(nil)
	for state := range DeliveryStates {
		parts[state], args = "(SELECT state FROM delivery FORCE INDEX (due) WHERE state = ? LIMIT ?)", append(args, state, CountedMost)
	}
	err = db.query(ctx, "count deliveries", func(rows *stdsql.Rows) error {
		var (
			state DeliveryState
			n     int64
		)
		err := rows.Scan(&state, &n)
		c.States[state.String()] = n
		return err
	}, "SELECT state, COUNT(*) FROM ("+strings.Join(parts, " UNION ALL ")+") d GROUP BY state", args...)
	return c, err
}

// InsertDelivery writes a message.
func (tx *Tx) InsertDelivery(r *DeliveryRow) (err error) {
	r.ID, err = tx.Insert("insert delivery", "INSERT INTO delivery (idem, kind, channel_id, channel, rule_id, rule, target, job_id, state, attempts, next_at, events, items, said, created, updated) VALUES "+
		Values(1, 16), r.Key[:], r.Kind, r.ChannelID, r.Channel, r.RuleID, r.Rule, r.Target, r.JobID, r.State, r.Attempts, int64(r.NextAt), r.Events, r.Items, Cut(r.Said, 512),
		int64(r.Created), int64(r.Updated))
	return err
}

// FiringAlert is an alert that fires.
type FiringAlert struct {
	ID      int64
	Silence int64 // which keeps it from being told; zero: none does
}

// FiringAlerts lists alerts that fire, the latest first.
func (db *DB) FiringAlerts(ctx context.Context, limit int) (out []FiringAlert, err error) {
	err = db.query(ctx, "list firing alerts", func(rows *stdsql.Rows) error {
		var a FiringAlert
		err := rows.Scan(&a.ID, &a.Silence)
		out = append(out, a)
		return err
	}, "SELECT id, silence_id FROM alert FORCE INDEX (firing) WHERE firing = 1 ORDER BY id DESC LIMIT ?", limit)
	return out, err
}

// AlertsAfter lists the ids of alerts behind one.
func (db *DB) AlertsAfter(ctx context.Context, id int64, limit int) ([]int64, error) {
	return db.ids(ctx, "list new alerts", "SELECT id FROM alert WHERE id > ? ORDER BY id LIMIT ?", id, limit)
}

// LastAlert is the id of the latest alert, 0 if there is none.
func (db *DB) LastAlert(ctx context.Context) (int64, error) {
	found, err := db.ids(ctx, "find latest alert", "SELECT id FROM alert ORDER BY id DESC LIMIT 1")
	if err != nil || len(found) == 0 {
		return 0, err
	}
	return found[0], nil
}

// FiredByIDs returns those of some alerts that there are, by id.
func (db *DB) FiredByIDs(ctx context.Context, ids []int64) (out []FiredRow, err error) {
	for part := range slices.Chunk(ids, 900) {
		list, args := In(nil, part)
		if err = db.query(ctx, "read alerts", firedRows(&out), "SELECT "+firedColumns+" FROM alert FORCE INDEX (PRIMARY) WHERE id IN "+list+" ORDER BY id", args...); err != nil {
			return nil, err
		}
	}
	return out, nil
}
