package read

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"go-crontab/job"
	"go-crontab/sql"
	"go-crontab/sql/trip"

	"github.com/google/uuid"
)

// Run is a run for display, with the names to which its row refers.
type Run struct {
	ID int64
	job.Run
	State     trip.State
	DueNow    job.Micros // when it should have begun: the due time or later
	Hash      int
	Version   int32  // version of the definition when it began
	Job       string // the name of its job
	Executing bool
	Kept      int64 // bytes of kept output
	Status    int   // of an HTTP response; zero: none
}

// Place returns the run's position in lists.
func (r *Run) Place() *RunPlace {
	return &RunPlace{ID: r.ID, Due: r.Due, DueNow: r.DueNow, Request: r.Request, Attempt: r.Attempt, Hash: r.Hash}
}

const selectRuns = `
	SELECT r.id, r.claim, r.job_id, r.version, r.due, r.due_now, r.hash, r.kind, r.request, r.attempt, r.state,
		r.final <> 0, r.outcome,
		COALESCE(r.reason_code, ''), COALESCE(r.reason, ''), r.exit_code, COALESCE(r.sig, ''),
		COALESCE(r.due_last, r.due), COALESCE(r.due_count, 1),
		r.started, r.ended, r.output_bytes, r.output_kept, COALESCE(r.given, ''),
		COALESCE(a.name, ''), COALESCE(j.name, ''), l.session, COALESCE(l.node, '')`

// joinNames joins to runs the names to which their rows refer.
const joinNames = `
	LEFT JOIN job j FORCE INDEX (PRIMARY) ON j.id = r.job_id
	LEFT JOIN app a FORCE INDEX (PRIMARY) ON a.id = r.app_id
	LEFT JOIN life l FORCE INDEX (PRIMARY) ON l.id = IF(r.session > 0, r.session, r.owner)`

func scanRun(rows *sql.Rows) (*Run, error) {
	var (
		r       Run
		outcome string
		exit    int
		session []byte
		given   string
	)
	err := rows.Scan(&r.ID, &r.Launch.Claim, &r.JobID, &r.Version, &r.Due, &r.DueNow, &r.Hash, &r.Kind, &r.Request,
		&r.Attempt, &r.State,
		&r.Final, &outcome, &r.Reason.Code, &r.Reason.Text, &exit, &r.Signal, &r.Until, &r.Count, &r.Started, &r.Ended,
		&r.Output.Bytes, &r.Kept, &given, &r.App, &r.Job, &session, &r.Node)
	if err != nil {
		return nil, err
	}

	r.Launch.Run = r.ID
	r.Given = job.ParseGiven(given)
	if len(session) > 0 {
		r.Session, err = uuid.FromBytes(session)
	}

	r.Executing = r.State == trip.Executing
	if r.State == trip.Ended {
		r.Outcome, _ = job.ParseOutcome(outcome)
	}
	switch {
	case exit >= trip.HTTPStatus:
		r.Status = exit - trip.HTTPStatus
	case exit >= 0:
		r.ExitCode = &exit
	}

	if r.Started != 0 {
		// A start is committed a little before the due time. The command is spawned at the due
		// time.
		r.Started = max(r.Started, r.DueNow)
		r.Lateness = int64(r.Started - r.DueNow)
	}

	return &r, err
}

// runsByID reads runs in any state.
func runsByID(r sql.Reader, ids []int64) (map[int64]*Run, error) {
	out := make(map[int64]*Run, len(ids))
	for part := range slices.Chunk(ids, idsAtOnce) {
		query := selectRuns + `
			FROM run r FORCE INDEX (PRIMARY)` + joinNames + `
			WHERE r.id IN ` + list(part)
		rows, err := sql.Select(r, "read runs", scanRun, query)
		if err != nil {
			return nil, err
		}

		for _, run := range rows {
			out[run.ID] = run
		}
	}

	return out, nil
}

// RunsInAnyState reads runs in any state, even runs that have not begun.
func (db Watch) RunsInAnyState(ctx context.Context, ids []int64) (map[int64]Run, error) {
	rows, err := runsByID(db.Reader(ctx), ids)
	out := make(map[int64]Run, len(rows))
	for id, r := range rows {
		out[id] = *r
	}
	return out, err
}

// RunsByID reads ended runs.
func (db *DB) RunsByID(ctx context.Context, ids []int64) (map[int64]Run, error) {
	rows, err := runsByID(db.Reader(ctx), ids)
	out := make(map[int64]Run, len(rows))
	for id, r := range rows {
		if r.State == trip.Ended {
			out[id] = *r
		}
	}
	return out, err
}

// Run returns an executing or ended run, or sql.ErrNotFound. An ended run includes its kept output.
func (db *DB) Run(ctx context.Context, id int64) (Run, error) {
	reader := db.Reader(ctx)
	rows, err := runsByID(reader, []int64{id})
	if err != nil {
		return Run{}, err
	}

	r := rows[id]
	switch {
	case r == nil || r.State != trip.Ended && r.State != trip.Executing:
		return Run{}, sql.ErrNotFound
	case r.State == trip.Executing || r.Kept == 0 && r.Status == 0:
		return *r, nil
	}

	_, err = readOutputs(reader, map[int64]*Run{id: r})
	return *r, err
}

// readOutputs reads the kept output of runs, without the parts of large outputs. It returns the
// number of runs that had output. If it returns ErrUnreadable, it has read all outputs that are
// readable.
func readOutputs(r sql.Reader, runs map[int64]*Run) (n int, err error) {
	ids := make([]int64, 0, len(runs))
	for id, run := range runs {
		if run.Kept > 0 || run.Status > 0 {
			ids = append(ids, id)
		}
	}

	slices.Sort(ids)
	var unreadable error
	scan := func(rows *sql.Rows) (id int64, err error) {
		var o job.Output
		var extra []byte
		err = rows.Scan(&id, &o.Head, &o.Tail, &o.Encoding, &o.Parts, &extra)
		if err != nil {
			return id, err
		}

		if err := o.Unpack(); err != nil {
			unreadable = fmt.Errorf("%w: run %d: %w", ErrUnreadable, id, err)
			return id, nil
		}
		if len(extra) > 0 {
			var x trip.Extra
			if err := json.Unmarshal(extra, &x); err != nil {
				unreadable = fmt.Errorf("%w: run %d: %w", ErrUnreadable, id, err)
				return id, nil
			}
			o.Lines, o.Stamps, o.Answer = x.Lines, x.Stamps, x.Answer
		}

		if run := runs[id]; run != nil {
			o.Bytes = run.Output.Bytes
			run.Output = o
		}
		return id, nil
	}

	for part := range slices.Chunk(ids, idsAtOnce) {
		query := `
			SELECT run_id, head, tail, encoding, parts, extra
			FROM output FORCE INDEX (PRIMARY)
			WHERE run_id IN ` + list(part)
		found, err := sql.Select(r, "read output", scan, query)
		if err != nil {
			return n, err
		}
		n += len(found)
	}

	return n, unreadable
}

// Chunks reads the output of an executing run in pieces, from byte `from` on.
func (db *DB) Chunks(ctx context.Context, l trip.Launch, from int64) ([]job.Piece, error) {
	const query = `
		SELECT at_byte, line, data
		FROM chunk FORCE INDEX (PRIMARY)
		WHERE run_id = ? AND claim = ? AND at_byte >= COALESCE((
			SELECT MAX(c.at_byte)
			FROM chunk c FORCE INDEX (PRIMARY)
			WHERE c.run_id = ? AND c.claim = ? AND c.at_byte <= ?), 0)
		ORDER BY at_byte`

	scan := func(rows *sql.Rows) (p job.Piece, err error) {
		err = rows.Scan(&p.At, &p.Line, &p.Data)
		return p, err
	}

	pieces, err := sql.Select(db.Reader(ctx), "read live output", scan, query, l.Run, l.Claim, l.Run, l.Claim, from)
	return slices.DeleteFunc(pieces, func(p job.Piece) bool { return p.End() <= from }), err
}

// begunBy is an upper bound for due_now of executing runs: a start is committed only a little
// before the due time. With this bound, a list of executing runs does not have to read prepared
// runs that are due later.
const begunBy = "(CAST(UNIX_TIMESTAMP(NOW(6)) * 1000000 AS SIGNED) + 1000000)"

// ExecutingRuns lists the executing runs, latest due first. It reads all of them: the cluster's
// slots limit how many there are.
func (db *DB) ExecutingRuns(ctx context.Context, f RunFilter) ([]Run, error) {
	r := db.Reader(ctx)
	apps, none, err := appsOf(r, f.App, f.Apps)
	if err != nil || none {
		return nil, err
	}

	owners, err := trip.Owners(r)
	if err != nil || len(owners) == 0 {
		return nil, err
	}

	conditions := []Condition{{"r.state = 'executing'", nil}}
	add := func(text string, args ...any) { conditions = append(conditions, Condition{text, args}) }
	if f.JobID != 0 {
		add("r.job_id = ?", f.JobID)
	}
	if apps != nil {
		add("r.app_id IN " + list(apps))
	}
	if f.Node != "" {
		add("l.node = ?", f.Node)
	}

	if f.Kind != "" {
		add("r.kind = ?", string(f.Kind))
	}
	if f.From != 0 {
		add("r.due >= ?", int64(f.From))
	}
	if f.To != 0 {
		add("r.due < ?", int64(f.To))
	}

	if a := f.After; a != nil {
		add("(r.due < ? OR r.due = ? AND r.id < ?)", int64(a.Due), int64(a.Due), a.ID)
	}

	where, args := all(conditions)

	query := selectRuns + `
		FROM run r FORCE INDEX (live)` + joinNames + `
		WHERE r.owner IN ` + list(owners) + ` AND r.due_now <= ` + begunBy + ` AND ` + where + `
		ORDER BY r.due DESC, r.id DESC
		LIMIT ?`

	rows, err := sql.Select(r, "list executing runs", scanRun, query, append(args, f.Limit)...)
	out := make([]Run, len(rows))
	for i := range rows {
		out[i] = *rows[i]
	}

	return out, err
}

// OutputRemoved reports whether the output of the run was removed because its app reached its
// limit.
func (r *Run) OutputRemoved() bool { return r.Output.Bytes > 0 && r.Kept == 0 && r.State == trip.Ended }

// ErrUnreadable means that stored output is damaged or was written by a newer version.
var ErrUnreadable = errors.New("stored output cannot be read")
