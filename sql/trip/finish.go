package trip

import (
	"strings"

	"go-crontab/job"
	"go-crontab/sql"
)

// Finish writes the ends of executing runs of a session, and returns how many rows it changed. If that is less than the
// number of ends, FinishedAmong says whose rows were changed.
func Finish(tx *sql.Tx, session Owner, ends []End) (int64, error) {
	if len(ends) == 0 {
		return 0, nil
	}
	r := jsonRows(len(ends))
	for i := range ends {
		e := &ends[i]
		r.begin()
		r.number(e.Run)
		r.number(int64(e.Claim))
		r.number(int64(e.Outcome))
		r.number(int64(flag(e.Final)))
		r.number(int64(e.Started))
		r.number(int64(e.Ended))
		if e.Exit == nil {
			r.null()
		} else {
			r.number(int64(*e.Exit))
		}
		r.text(e.Signal)
		r.text(e.Reason)
		r.number(e.Bytes)
		r.number(int64(len(e.Head) + len(e.Tail)))
		r.end()
	}
	const query = `
		UPDATE JSON_TABLE(?, '$[*]' COLUMNS (
			id BIGINT PATH '$[0]', claim INT PATH '$[1]', outcome INT PATH '$[2]', final INT PATH '$[3]',
			started BIGINT PATH '$[4]', ended BIGINT PATH '$[5]', exit_code INT PATH '$[6]',
			sig VARCHAR(16) PATH '$[7]', reason VARCHAR(512) PATH '$[8]',
			bytes BIGINT PATH '$[9]', kept BIGINT PATH '$[10]')) n
		STRAIGHT_JOIN run r FORCE INDEX (PRIMARY) ON r.id = n.id
		SET r.state = 'ended', r.owner = -2, r.outcome = n.outcome, r.final = n.final, r.started = n.started,
			r.ended = n.ended, r.exit_code = n.exit_code, r.sig = n.sig, r.reason = n.reason,
			r.output_bytes = NULLIF(n.bytes, 0), r.output_kept = NULLIF(n.kept, 0)
		WHERE r.claim = n.claim AND r.owner = ? AND r.state = 'executing'`

	n, err := tx.Exec("finish runs", query, r.json(), int32(session))
	if err != nil {
		return 0, err
	}
	return n, insertOutput(tx, ends)
}

func insertOutput(tx *sql.Tx, ends []End) error {
	var args []any
	for i := range ends {
		if e := &ends[i]; len(e.Head)+len(e.Tail) > 0 {
			args = append(args, e.Run, e.Head, e.Tail)
		}
	}
	if len(args) == 0 {
		return nil
	}
	query := "INSERT INTO output (run_id, head, tail) VALUES (?, ?, ?)" + strings.Repeat(", (?, ?, ?)", len(args)/3-1)
	_, err := tx.Exec("insert output", query, args...)
	return err
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
	Reason  string
}

// Refuse ends prepared runs of a session. Each of them is final.
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
		r.text(f.Reason)
		r.end()
	}
	const query = `
		UPDATE JSON_TABLE(?, '$[*]' COLUMNS (
			id BIGINT PATH '$[0]', claim INT PATH '$[1]', outcome INT PATH '$[2]', reason VARCHAR(512) PATH '$[3]')) n
		STRAIGHT_JOIN run r FORCE INDEX (PRIMARY) ON r.id = n.id
		SET r.state = 'ended', r.session = ?, r.owner = -2, r.outcome = n.outcome, r.final = 1, r.ended = ?, r.reason = n.reason
		WHERE r.claim = n.claim AND r.owner = ? AND r.state = 'prepared'`

	return tx.Exec("refuse runs", query, r.json(), int32(session), int64(now), int32(session))
}
