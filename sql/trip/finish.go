package trip

import (
	"encoding/json"
	"slices"
	"strings"

	"go-crontab/job"
	"go-crontab/sql"
)

// FinishAlone writes the ends of a session's executing runs that are not awaited and hold no slot.
// It returns the number of changed rows. If that number is lower than the number of ends,
// EndedAmong finds the runs that have ended, now or before.
func FinishAlone(tx *sql.Tx, session Owner, ends []End) (changed int64, err error) {
	return finish(tx, session, ends, " AND r.awaited = 0 AND r.grp = 0")
}

// Finish writes the ends of executing runs of a session, whose rows the transaction has locked.
func Finish(tx *sql.Tx, session Owner, ends []End) error {
	n, err := finish(tx, session, ends, "")
	return expect("finish runs", n, len(ends), err)
}

// finish writes the ends of runs that match the guard. It skips a run that is no longer at its
// launch, because another node has ended it.
//
// Most ends differ only in their times. For such ends, the statement has three numbers for each
// run, and one copy of the other values. Each further column would cost the server a microsecond
// for each run.
func finish(tx *sql.Tx, session Owner, ends []End, guard string) (changed int64, err error) {
	plain := map[alike][]*End{}
	var rich []*End
	for i := range ends {
		e := &ends[i]
		if e.Signal != "" || e.Reason != (job.Reason{}) || e.Output.Bytes != 0 || e.Output.Answer != nil || e.Live {
			rich = append(rich, e)
			continue
		}
		key := alike{e.Claim, e.Outcome, e.Final, exitOf(e)}
		plain[key] = append(plain[key], e)
	}

	for key, part := range plain {
		n, err := finishAlike(tx, session, key, part, guard)
		if err != nil {
			return 0, err
		}
		changed += n
	}

	n, err := finishRich(tx, session, rich, guard)
	if err != nil {
		return 0, err
	}

	changed += n
	return changed, noteFinished(tx, ends, changed)
}

// noteFinished notes the ends for followers.
func noteFinished(tx *sql.Tx, ends []End, changed int64) error {
	notes := make([]Note, len(ends))
	for i := range ends {
		e := &ends[i]
		notes[i] = Note{Run: e.Run, JobID: e.JobID, Outcome: e.Outcome}
	}
	return noteEnds(tx, notes, changed)
}

// alike holds the values that plain ends have in common.
type alike struct {
	claim   int32
	outcome job.Outcome
	final   bool
	exit    int
}

// Values of the column exit_code that are not exit codes.
const (
	noExit = -1
	// HTTPStatus is added to the status of an HTTP response. The sum is stored as the exit code.
	// It is higher than any exit code of a command.
	HTTPStatus = 1000
)

func exitOf(e *End) int {
	switch {
	case e.Output.Answer != nil:
		return HTTPStatus + e.Output.Answer.Status
	case e.Exit == nil:
		return noExit
	}
	return *e.Exit
}

func finishAlike(tx *sql.Tx, session Owner, key alike, ends []*End, guard string) (int64, error) {
	r := jsonRows(len(ends))
	for _, e := range ends {
		r.begin()
		r.number(e.Run)
		r.number(int64(e.Started))
		r.number(int64(e.Ended))
		r.end()
	}

	query := `
		UPDATE JSON_TABLE(?, '$[*]' COLUMNS (
			id BIGINT PATH '$[0]', started BIGINT PATH '$[1]', ended BIGINT PATH '$[2]')) n
		STRAIGHT_JOIN run r FORCE INDEX (PRIMARY) ON r.id = n.id
		SET r.state = 'ended', r.owner = -2, r.outcome = ?, r.final = ?, r.exit_code = ?,
			r.started = n.started, r.ended = n.ended
		WHERE r.claim = ? AND r.owner = ? AND r.state = 'executing'` + guard

	return tx.Exec("finish runs", query, r.json(), int(key.outcome), key.final, key.exit, key.claim, int32(session))
}

func finishRich(tx *sql.Tx, session Owner, ends []*End, guard string) (int64, error) {
	if len(ends) == 0 {
		return 0, nil
	}

	r := jsonRows(len(ends))
	for _, e := range ends {
		r.begin()
		r.number(e.Run)
		r.number(int64(e.Claim))
		r.number(int64(e.Outcome))
		r.number(int64(flag(e.Final)))
		r.number(int64(e.Started))
		r.number(int64(e.Ended))
		r.number(int64(exitOf(e)))
		r.text(sql.Cut(e.Signal, 16)) // MySQL's JSON_TABLE turns a text that is too long into NULL
		r.reason(e.Reason)
		r.number(e.Output.Bytes)
		r.number(int64(e.Output.Kept()))
		r.end()
	}

	query := `
		UPDATE JSON_TABLE(?, '$[*]' COLUMNS (
			id BIGINT PATH '$[0]', claim INT PATH '$[1]', outcome INT PATH '$[2]', final INT PATH '$[3]',
			started BIGINT PATH '$[4]', ended BIGINT PATH '$[5]', exit_code INT PATH '$[6]',
			sig VARCHAR(16) PATH '$[7]', reason_code VARCHAR(32) PATH '$[8]', reason VARCHAR(512) PATH '$[9]',
			bytes BIGINT PATH '$[10]', kept BIGINT PATH '$[11]')) n
		STRAIGHT_JOIN run r FORCE INDEX (PRIMARY) ON r.id = n.id
		SET r.state = 'ended', r.owner = -2, r.outcome = n.outcome, r.final = n.final,
			r.started = IF(n.started = 0, GREATEST(r.started, r.due_now), n.started), r.ended = n.ended,
			r.exit_code = n.exit_code, r.sig = n.sig, r.reason_code = n.reason_code, r.reason = n.reason,
			r.output_bytes = n.bytes, r.output_kept = n.kept
		WHERE r.claim = n.claim AND r.owner = ? AND r.state = 'executing'` + guard

	changed, err := tx.Exec("finish runs with output", query, r.json(), int32(session))
	if err != nil {
		return 0, err
	}
	if err := insertOutput(tx, ends); err != nil {
		return 0, err
	}

	return changed, dropLive(tx, ends)
}

// insertOutput stores the output of runs. It skips runs whose rows do not say that they have
// output, because another node has ended them. It also skips output that is already stored,
// because an end may be written again after an unknown commit.
func insertOutput(tx *sql.Tx, ends []*End) error {
	with := slices.DeleteFunc(slices.Clone(ends), func(e *End) bool { return !e.storesOutput() })
	if len(with) == 0 {
		return nil
	}

	query := `
		SELECT r.id
		FROM run r FORCE INDEX (PRIMARY)
		LEFT JOIN output o ON o.run_id = r.id
		WHERE r.id IN ` + each(with, func(e **End) int64 { return (*e).Run }) + `
			AND (r.output_kept > 0 OR r.exit_code >= 1000) AND o.run_id IS NULL`
	ids, err := sql.Select(tx, "look for runs with output", scanID, query)
	if err != nil {
		return err
	}

	wanted := make(map[int64]bool, len(ids))
	for _, id := range ids {
		wanted[id] = true
	}

	var args []any
	size := 0
	insert := func() error {
		if len(args) == 0 {
			return nil
		}
		const row = "(?, ?, ?, ?, ?, ?)"
		query := `
			INSERT INTO output (run_id, head, tail, encoding, parts, extra)
			VALUES ` + row + strings.Repeat(", "+row, len(args)/6-1)
		_, err := tx.Exec("insert output", query, args...)
		args, size = nil, 0
		return err
	}

	for _, e := range with {
		if !wanted[e.Run] {
			continue
		}
		o := &e.Output
		extra := extraOf(o)
		args = append(args, e.Run, bytesOf(o.Head), bytesOf(o.Tail), o.Encoding, o.Parts, extra)
		if size += len(o.Head) + len(o.Tail) + len(extra); size >= outputBytes {
			if err := insert(); err != nil {
				return err
			}
		}
	}

	return insert()
}

// storesOutput reports whether the run gets a row of output. For an HTTP response without a body,
// the run gets a row only if it did not succeed.
func (e *End) storesOutput() bool {
	return e.Output.Kept() > 0 || e.Output.Answer != nil && e.Outcome != job.Succeeded
}

// Extra holds the values that a row of output stores as JSON. Most rows have none of them.
type Extra struct {
	Lines  int64       `json:"lines,omitempty"`
	Stamps []byte      `json:"stamps,omitempty"`
	Answer *job.Answer `json:"answer,omitempty"`
}

// extraOf returns the JSON of an output's Extra, or nil (NULL) if there is nothing to store.
func extraOf(o *job.Output) []byte {
	if o.Lines == 0 && len(o.Stamps) == 0 && o.Answer == nil {
		return nil
	}
	b, _ := json.Marshal(Extra{o.Lines, o.Stamps, o.Answer}) // these types always encode
	return b
}

// bytesOf returns the text, never as NULL.
func bytesOf(text []byte) []byte {
	if text == nil {
		return []byte{}
	}
	return text
}

// dropLive removes the pieces of live output, because readers use them only while a run executes.
// It removes them even if another node has ended the run.
func dropLive(tx *sql.Tx, ends []*End) error {
	var live []int64
	for _, e := range ends {
		if e.Live {
			live = append(live, e.Run)
		}
	}
	return DropChunks(tx, live)
}

func flag(b bool) int {
	if b {
		return 1
	}
	return 0
}

// Refusal is the end of a prepared run that was never started.
type Refusal struct {
	Launch
	Outcome job.Outcome
	Reason  job.Reason
}

// Refuse ends prepared runs of a session as final, and returns the number of changed rows.
func Refuse(tx *sql.Tx, session Owner, refusals []Refusal, now job.Micros) (int64, error) {
	if len(refusals) == 0 {
		return 0, nil
	}

	r := jsonRows(len(refusals))
	for _, f := range refusals {
		r.begin()
		r.number(f.Run)
		r.number(int64(f.Claim))
		r.number(int64(f.Outcome))
		r.reason(f.Reason)
		r.end()
	}

	const query = `
		UPDATE JSON_TABLE(?, '$[*]' COLUMNS (
			id BIGINT PATH '$[0]', claim INT PATH '$[1]', outcome INT PATH '$[2]',
			reason_code VARCHAR(32) PATH '$[3]', reason VARCHAR(512) PATH '$[4]')) n
		STRAIGHT_JOIN run r FORCE INDEX (PRIMARY) ON r.id = n.id
		SET r.state = 'ended', r.session = ?, r.owner = -2, r.outcome = n.outcome, r.final = 1, r.ended = ?,
			r.reason_code = n.reason_code, r.reason = n.reason
		WHERE r.claim = n.claim AND r.owner = ? AND r.state = 'prepared'`

	changed, err := tx.Exec("refuse runs", query, r.json(), int32(session), int64(now), int32(session))
	if err != nil {
		return 0, err
	}

	return changed, noteRefused(tx, refusals, changed)
}
