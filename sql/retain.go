package sql

import (
	"context"
	stdsql "database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"go-crontab/job"

	"github.com/google/uuid"
)

// Retentions are the rules of apps, and, under "", of the cluster. One that cannot be read, since a hand wrote it, is an
// error: nothing is to go by a rule that nobody can read.
func (db *DB) Retentions(ctx context.Context) (map[string]job.Retention, error) {
	out := map[string]job.Retention{}
	err := db.query(ctx, "read retention", retentionRows(out), "SELECT app, spec FROM retention")
	return out, err
}

// UnreadableRule is that the rule of an app, or of the cluster, "", is none that this version knows.
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

func retentionRows(out map[string]job.Retention) func(*stdsql.Rows) error {
	return func(rows *stdsql.Rows) error {
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

// LockRetention reads a rule and keeps others from changing it; nil when there is none. It locks the cluster's rule too: so
// the first rule of an app, which has no row to lock, waits for HoldRule as well.
func (tx *Tx) LockRetention(app string) (*job.Retention, error) {
	var out *job.Retention
	err := tx.query("lock retention", func(rows *stdsql.Rows) error {
		var of, spec string
		if err := rows.Scan(&of, &spec); err != nil || of != app {
			return err
		}
		r, err := job.DecodeRetention(spec)
		if err != nil {
			r = job.Retention{} // whoever writes it anew mends it
		}
		out = &r
		return nil
	}, "SELECT app, spec FROM retention FORCE INDEX (PRIMARY) WHERE app IN ('', ?) ORDER BY app FOR UPDATE", app)
	return out, err
}

// PutRetention writes a rule. An empty one of an app is no row.
func (tx *Tx) PutRetention(app string, r job.Retention, who string, now job.Micros) error {
	if app != "" && r == (job.Retention{}) {
		_, err := tx.exec("drop retention", "DELETE FROM retention WHERE app = ?", app)
		return err
	}
	_, err := tx.exec("put retention", "INSERT INTO retention (app, spec, who, updated) VALUES (?, ?, ?, ?) ON DUPLICATE KEY UPDATE spec = VALUES(spec), who = VALUES(who), updated = VALUES(updated)",
		app, r.Encode(), cut(who, 128), int64(now))
	return err
}

// Names of chores.
const (
	ChoreRetention = "retention" // removes records
	ChoreOutput    = "output"    // removes output of apps over their limit
)

// Chore is how something stands that one node at a time does for all.
type Chore struct {
	Session  uuid.UUID // who does it; uuid.Nil: nobody
	Until    job.Micros
	At       int64 // how far it is
	Ended    job.Micros
	Removed  int64
	Archived int64
	Failures int64
	Error    string
	ErrorAt  job.Micros
}

// Retaining is how the removal of records stands.
func (db *DB) Retaining(ctx context.Context) (c Chore, err error) {
	err = db.query(ctx, "read chore", func(rows *stdsql.Rows) error {
		var session []byte
		err := rows.Scan(&session, &c.Until, &c.At, &c.Ended, &c.Removed, &c.Archived, &c.Failures, &c.Error, &c.ErrorAt)
		c.Session, _ = uuid.FromBytes(session)
		return err
	}, "SELECT session_id, until, at_id, ended, removed, archived, failures, error, error_at FROM chore WHERE name = 'retention'")
	return c, err
}

// TakeChore has a session do a chore for a while, unless another one does. It tells whether it does, and how far the one
// before it was. An end so far ahead that nobody writes it is a hand's, and holds nobody up.
func (db *DB) TakeChore(ctx context.Context, name string, session uuid.UUID, hold time.Duration) (mine bool, at int64, err error) {
	err = db.Tx(ctx, func(tx *Tx) error {
		n, err := tx.exec("take chore", "UPDATE chore FORCE INDEX (PRIMARY) SET session_id = ?, until = "+now+" + ? WHERE name = ? AND (session_id = ? OR session_id IS NULL OR until < "+now+" OR until > "+now+" + ?)",
			session[:], hold.Microseconds(), name, session[:], 2*hold.Microseconds())
		if mine = n == 1; err != nil || !mine {
			return err
		}
		return tx.query("read chore", func(rows *stdsql.Rows) error { return rows.Scan(&at) }, "SELECT at_id FROM chore WHERE name = ?", name)
	})
	return mine && err == nil, at, err
}

// ChoreDone is what a session did of it since it said so last.
type ChoreDone struct {
	At                int64 // how far it is
	Ended             job.Micros
	Removed, Archived int64
	Failures          int64 // since a round without any
	Error             string
	ErrorAt           job.Micros
}

// TellChore writes down what a session did of the removal of records.
func (db *DB) TellChore(ctx context.Context, session uuid.UUID, d ChoreDone) error {
	return db.Tx(ctx, func(tx *Tx) error {
		_, err := tx.exec("tell of chore", "UPDATE chore FORCE INDEX (PRIMARY) SET at_id = ?, ended = GREATEST(ended, ?), "+added("removed")+", "+added("archived")+", failures = ?,"+
			" error = IF(? = '', error, ?), error_at = GREATEST(error_at, ?) WHERE name = 'retention' AND session_id = ?",
			d.At, int64(d.Ended), d.Removed, d.Archived, d.Failures, cut(d.Error, 512), cut(d.Error, 512), int64(d.ErrorAt), session[:])
		return err
	})
}

// KeptJob is a job, which may be deleted, with what its definition says of its records.
type KeptJob struct {
	ID     int64
	App    string
	Keep   job.Keep
	Oldest job.Micros // its first due time that has a record; 0: there is none
}

// Rule is by what the records of the job go: what its definition leaves out the rule of its app says, and then that of the
// cluster.
func (j *KeptJob) Rule(rules map[string]job.Retention) job.Retention {
	cluster := rules[""]
	return job.Retention{Keep: j.Keep.Over(rules[j.App].Keep).Over(cluster.Keep), Archive: cluster.Archive}
}

// jobKeep is what a definition says of the job's records; NULL where that is nothing, and where nobody can read it.
const jobKeep = "IF(j.spec LIKE '%\"keep\"%', IF(JSON_VALID(j.spec), JSON_EXTRACT(j.spec, '$.keep'), NULL), NULL)"

// setKeep takes what jobKeep says.
func (j *KeptJob) setKeep(text []byte) error {
	if len(text) == 0 {
		return nil
	}
	r, err := job.DecodeRetention(string(text))
	j.Keep = r.Keep
	return err
}

// KeptJobs lists jobs behind an id. It reads one entry of the index of records for each.
func (db *DB) KeptJobs(ctx context.Context, after int64, limit int) ([]KeptJob, error) {
	var out []KeptJob
	err := db.query(ctx, "list jobs with what they keep", func(rows *stdsql.Rows) error {
		var (
			j      KeptJob
			keep   []byte
			oldest stdsql.NullInt64
		)
		if err := rows.Scan(&j.ID, &j.App, &keep, &oldest); err != nil {
			return err
		}
		j.Oldest = job.Micros(oldest.Int64)
		if j.setKeep(keep) != nil {
			j.Oldest = 0 // what it wants to keep cannot be read: all stays
		}
		out = append(out, j)
		return nil
	}, "SELECT j.id, j.app, "+jobKeep+", (SELECT h.due FROM history h FORCE INDEX (attempt) WHERE h.job_id = j.id ORDER BY h.due LIMIT 1)"+
		" FROM job j FORCE INDEX (PRIMARY) WHERE j.id > ? ORDER BY j.id LIMIT ?", after, limit)
	return out, err
}

// LookMost is how many records of a job one statement of the removal reads: with millions of one job, each stays well below
// the time that a statement may take.
const LookMost = 10_000

// LastDues returns the due time before which a job has no more than so many records; 0 when it has not that many.
func (db *DB) LastDues(ctx context.Context, jobID int64, records int64) (job.Micros, error) {
	type place struct {
		due             job.Micros
		origin, attempt int64
	}
	at := place{due: 1 << 62}
	for {
		step, found := min(records, LookMost), false
		err := db.query(ctx, "count records", func(rows *stdsql.Rows) error {
			found = true
			return rows.Scan(&at.due, &at.origin, &at.attempt)
		}, "SELECT due, origin, attempt FROM history FORCE INDEX (attempt) WHERE job_id = ? AND due <= ? AND (due < ? OR origin < ? OR origin = ? AND attempt < ?)"+
			" ORDER BY due DESC, origin DESC, attempt DESC LIMIT 1 OFFSET ?", jobID, int64(at.due), int64(at.due), at.origin, at.origin, at.attempt, step-1)
		if err != nil || !found {
			return 0, err
		}
		if records -= step; records == 0 {
			return at.due, nil
		}
	}
}

// LastBytes returns the due time before which the latest records of a job keep no more output than so much; 0 when all of
// them do. It reads no more records than that.
func (db *DB) LastBytes(ctx context.Context, jobID int64, most job.Size) (job.Micros, error) {
	const page = 1000
	before, sum := int64(1)<<62, int64(0)
	for {
		n, first := 0, int64(0)
		var found job.Micros
		err := db.query(ctx, "add up output", func(rows *stdsql.Rows) error {
			var due, kept int64
			err := rows.Scan(&due, &kept)
			n, first = n+1, due
			if sum += kept; sum > int64(most) && found == 0 {
				found = job.Micros(due + 1) // this one is too much
			}
			return err
		}, "SELECT due, SUM(output_kept) FROM (SELECT due, output_kept FROM history FORCE INDEX (attempt) WHERE job_id = ? AND due < ? ORDER BY due DESC, origin DESC, attempt DESC LIMIT ?) latest"+
			" GROUP BY due ORDER BY due DESC", jobID, before, page)
		if err != nil || found != 0 || n == 0 || first == before {
			return found, err
		}
		before = first
	}
}

// Cut says which records of a job go: those due before Due, that ended before Ended or are due before Surely; of those
// that did not succeed only the ones that ended before Failed.
type Cut struct {
	JobID  int64
	From   job.Micros // what is due earlier was looked at already
	To     job.Micros // what is due later is not looked at yet, see LookAhead
	Due    job.Micros
	Ended  job.Micros
	Surely job.Micros
	Failed job.Micros
}

// OldRun is a record that goes.
type OldRun struct {
	ID      int64
	JobID   int64
	Due     job.Micros
	Launch  job.Launch
	Outcome job.Outcome
	Trigger int
	Output  bool // it may have a row of output
	App     string
}

// LookAhead says up to where the next LookMost records of a cut are due. Those that stay, as failures that are kept longer, may be
// many.
func (db *DB) LookAhead(ctx context.Context, c Cut) (to job.Micros, err error) {
	to = c.Due
	err = db.query(ctx, "look ahead of old runs", func(rows *stdsql.Rows) error { return rows.Scan(&to) },
		"SELECT due FROM history FORCE INDEX (attempt) WHERE job_id = ? AND due > ? AND due < ? ORDER BY due, origin, attempt LIMIT 1 OFFSET ?", c.JobID, int64(c.From), int64(c.Due), LookMost)
	return to, err
}

// OldRuns lists records that go, the earliest due first, between From and To. It takes no lock.
func (db *DB) OldRuns(ctx context.Context, c Cut, limit int) ([]OldRun, error) {
	var out []OldRun
	err := db.query(ctx, "list old runs", func(rows *stdsql.Rows) error {
		r := OldRun{JobID: c.JobID}
		var session uuid.UUID
		err := rows.Scan(&r.ID, &r.Due, &session, &r.Launch.N, &r.Outcome, &r.Trigger, &r.Output, &r.App)
		r.Launch.Session = session
		out = append(out, r)
		return err
	}, "SELECT h.id, h.due, h.session_id, h.launch, h.outcome, h.trig, h.output_bytes > 0, "+appOfRun+
		" FROM history h FORCE INDEX (attempt) STRAIGHT_JOIN job j ON j.id = h.job_id WHERE h.job_id = ? AND h.due >= ? AND h.due < ?"+
		" AND (h.ended < ? OR h.due < ?) AND (h.outcome NOT IN (2, 3, 4, 5, 7) OR h.ended < ?) ORDER BY h.due, h.origin, h.attempt LIMIT ?",
		c.JobID, int64(c.From), int64(c.To), int64(c.Ended), int64(c.Surely), int64(c.Failed), limit)
	return out, err
}

// ErrUnreadable is that the stored output of a run is not what this version writes: a newer one did, or it is damaged.
var ErrUnreadable = errors.New("stored output cannot be read")

// RunsWithOutput reads records with their output.
func (db *DB) RunsWithOutput(ctx context.Context, ids []int64) ([]RunRow, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	var out []RunRow
	at := map[job.Launch]int{}
	list, args := in(nil, ids)
	err := db.query(ctx, "read runs", func(rows *stdsql.Rows) error {
		r, err := scanRun(rows)
		at[r.Launch] = len(out)
		out = append(out, r)
		return err
	}, "SELECT "+runColumns+" FROM history h FORCE INDEX (PRIMARY) STRAIGHT_JOIN job j ON j.id = h.job_id WHERE h.id IN "+list+" ORDER BY h.id", args...)
	if err != nil {
		return nil, err
	}
	for session, counters := range launchesOf(out) {
		list, args := in([]any{session[:]}, counters)
		err := db.query(ctx, "read outputs", func(rows *stdsql.Rows) error {
			var n int64
			var o job.Output
			if err := rows.Scan(&n, &o.Head, &o.Tail, &o.Encoding); err != nil {
				return err
			}
			l := job.Launch{Session: session, N: n}
			if err := o.Unpack(); err != nil {
				return fmt.Errorf("run %s: %w: %w", l, ErrUnreadable, err)
			}
			r := &out[at[l]]
			r.Output.Head, r.Output.Tail = o.Head, o.Tail
			return nil
		}, "SELECT launch, head, tail, encoding FROM output FORCE INDEX (PRIMARY) WHERE session_id = ? AND launch IN "+list, args...)
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

func launchesOf(runs []RunRow) map[uuid.UUID][]int64 {
	out := map[uuid.UUID][]int64{}
	for i := range runs {
		if r := &runs[i]; r.Output.Bytes > 0 {
			out[r.Launch.Session] = append(out[r.Launch.Session], r.Launch.N)
		}
	}
	return out
}

// DropRuns removes records of one job, their output, and what lists find them by. All are found by primary keys, so that
// nothing is locked but what goes.
func (tx *Tx) DropRuns(runs []OldRun) error {
	if len(runs) == 0 {
		return nil
	}
	ids := make([]int64, len(runs))
	var outputs []KeptOutput
	type part struct {
		outcome job.Outcome
		trigger int
	}
	notable := map[part][]int{}
	for i := range runs {
		r := &runs[i]
		ids[i] = r.ID
		if r.Output {
			outputs = append(outputs, KeptOutput{ID: r.ID, App: r.App, Launch: r.Launch})
		}
		if r.Outcome != job.Succeeded || r.Trigger != 0 {
			p := part{r.Outcome, r.Trigger}
			notable[p] = append(notable[p], i)
		}
	}
	counting, err := tx.counting()
	if err != nil {
		return err
	}
	var kept []KeptOutput
	if counting {
		if kept, err = tx.keptNow(outputs); err != nil {
			return err
		}
	}
	slices.Sort(ids)
	list, args := in(nil, ids)
	if _, err := tx.exec("drop old runs", "DELETE h FROM history h FORCE INDEX (PRIMARY) WHERE h.id IN "+list, args...); err != nil {
		return err
	}
	if err := tx.dropOutputs(launchesOfKept(outputs)); err != nil {
		return err
	}
	for p, of := range notable {
		first, last := runs[of[0]].Due, runs[of[0]].Due
		var which []int64
		for _, i := range of {
			first, last = min(first, runs[i].Due), max(last, runs[i].Due)
			which = append(which, runs[i].ID)
		}
		list, args := in([]any{runs[0].JobID, int8(p.outcome), p.trigger, int64(first), int64(last)}, which)
		if _, err := tx.exec("drop old notes", "DELETE n FROM notable n FORCE INDEX (PRIMARY) WHERE n.job_id = ? AND n.outcome = ? AND n.trig = ? AND n.due BETWEEN ? AND ? AND n.id IN "+list, args...); err != nil {
			return err
		}
	}
	return tx.uncount(kept)
}

// HoldRule keeps others from changing the rule by which the records of a job go, or returns ErrMoved when it is not the given
// one any more. It comes last in a transaction that removes records: so the job's row is locked for as long as a COMMIT
// takes, and its starts hardly wait. Whoever has the job's row waits for no record that goes.
func (tx *Tx) HoldRule(jobID int64, rule job.Retention) error {
	j := KeptJob{ID: jobID}
	there := false
	err := tx.query("hold what a job keeps", func(rows *stdsql.Rows) error {
		var keep []byte
		err := rows.Scan(&j.App, &keep)
		there = err == nil && j.setKeep(keep) == nil
		return err
	}, "SELECT j.app, "+jobKeep+" FROM job j FORCE INDEX (PRIMARY) WHERE j.id = ? LOCK IN SHARE MODE", jobID)
	if err != nil {
		return err
	}
	rules := map[string]job.Retention{}
	err = tx.query("hold retention", retentionRows(rules), "SELECT app, spec FROM retention FORCE INDEX (PRIMARY) WHERE app IN ('', ?) ORDER BY app LOCK IN SHARE MODE", j.App)
	if err == nil && (!there || j.Rule(rules) != rule) {
		err = fmt.Errorf("hold the rule of job %d: %w", jobID, ErrMoved)
	}
	return err
}
