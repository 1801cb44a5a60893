package audit

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"go-crontab/job"
	"go-crontab/sql"
)

// Lines of the audit are chained after they are committed. If each change extended the chain in
// its own transaction, all changes would wait for one row. Instead, one node reads the unchained
// lines and adds a row of audit_chain for each. Two nodes cannot fork the chain, because the
// primary key refuses the rows of the second node.

const linkColumns = "c.seq, c.line, c.at, c.hash"

// scanLink scans linkColumns and further columns.
func scanLink(rows *sql.Rows, l *job.Link, more ...any) error {
	var hash []byte
	if err := rows.Scan(append([]any{&l.Seq, &l.Line, &l.At, &hash}, more...)...); err != nil {
		return err
	}
	copy(l.Hash[:], hash)
	return nil
}

// linkReach is the largest distance between the numbers of two successive links. If old links are
// removed, the gap stays far smaller. But a user with write access to the table can write any
// number, and after a link with the highest number there would be no room for the chain. So links
// beyond the reach are strays: the chain does not continue from them, and verification reports
// them.
const linkReach = 1 << 40

// reach returns the highest number that the link after seq may have.
func reach(seq int64) int64 { return min(seq, math.MaxInt64-linkReach) + linkReach }

// Head returns the latest link, or the zero Link.
func Head(r sql.Reader) (head job.Link, err error) {
	for {
		next, err := readLink(r, "read head of the audit chain",
			"WHERE c.seq > ? AND c.seq <= ? ORDER BY c.seq DESC LIMIT 1", head.Seq, reach(head.Seq))
		if err != nil || next.Seq == 0 {
			return head, err
		}
		head = next
	}
}

// readStrays returns up to limit links that are not part of the chain with the given head. Links
// that nodes add during the call are no strays, because they are within reach of the head.
func readStrays(r sql.Reader, head int64, limit int) (out []job.Link, err error) {
	err = sql.Each(r, "look for stray links of the audit chain", func(rows *sql.Rows) error {
		var l job.Link
		err := scanLink(rows, &l)
		out = append(out, l)
		return err
	}, `SELECT `+linkColumns+`
		FROM audit_chain c FORCE INDEX (PRIMARY)
		WHERE c.seq < 1 OR c.seq > ?
		ORDER BY c.seq
		LIMIT ?`,
		reach(head), limit)

	return out, err
}

// firstLink returns the oldest link, or the zero Link. The line of this link may have been removed.
func firstLink(r sql.Reader) (job.Link, error) {
	return readLink(r, "read base of the audit chain", "WHERE c.seq > 0 ORDER BY c.seq LIMIT 1")
}

// linkOf returns the link with a number, or the zero Link.
func linkOf(r sql.Reader, seq int64) (job.Link, error) {
	return readLink(r, "read link of the audit chain", "WHERE c.seq = ?", seq)
}

// linkUpTo returns the last link up to a number, or the zero Link.
func linkUpTo(r sql.Reader, seq int64) (job.Link, error) {
	return readLink(r, "read link of the audit chain",
		"WHERE c.seq > 0 AND c.seq <= ? ORDER BY c.seq DESC LIMIT 1", seq)
}

// linkAfter returns the first link, up to number last, whose line was written after an instant. It
// returns the zero Link if there is no such link.
func linkAfter(r sql.Reader, at job.Micros, last int64) (job.Link, error) {
	return readLink(r, "find link of the audit chain",
		"WHERE c.seq > 0 AND c.seq <= ? AND c.at > ? ORDER BY c.seq LIMIT 1", last, int64(at))
}

// readLink returns the last link of a query, or the zero Link.
func readLink(r sql.Reader, what, cond string, args ...any) (l job.Link, err error) {
	err = sql.Each(r, what, func(rows *sql.Rows) error { return scanLink(rows, &l) },
		`SELECT `+linkColumns+`
		FROM audit_chain c FORCE INDEX (PRIMARY)
		`+cond, args...)
	return l, err
}

// chainedLine says whether an audit line is chained.
type chainedLine struct {
	ID      int64
	At      job.Micros
	Chained bool
}

// chainedAfter lists up to limit audit lines with an id above after, by id.
func chainedAfter(r sql.Reader, after int64, limit int) ([]chainedLine, error) {
	return readChained(r, "a.id > ? ORDER BY a.id LIMIT ?", after, limit)
}

// chainedIn lists the audit lines in spans of ids, by id.
func chainedIn(r sql.Reader, spans []sql.Span) ([]chainedLine, error) {
	cond, args := sql.Within(spans)
	return readChained(r, cond+" ORDER BY a.id", args...)
}

func readChained(r sql.Reader, cond string, args ...any) ([]chainedLine, error) {
	scan := func(rows *sql.Rows) (l chainedLine, err error) {
		err = rows.Scan(&l.ID, &l.At, &l.Chained)
		return l, err
	}

	return sql.Select(r, "look for unchained audit lines", scan, `SELECT a.id, a.at, c.seq IS NOT NULL
		FROM audit a FORCE INDEX (PRIMARY)
		LEFT JOIN audit_chain c FORCE INDEX (line) ON c.line = a.id
		WHERE `+cond, args...)
}

// extend adds links after head for the given audit lines. It leaves out lines that are gone or
// already chained. It returns the new head. If another node has added links after head, the error
// is sql.ErrMoved.
//
// If we die before the commit, nothing is chained, and the next look finds the lines again. If the
// reply is lost, the next look finds out whether the lines are chained.
func extend(ctx context.Context, db *sql.DB, head job.Link, ids []int64) (job.Link, error) {
	list, args := sql.In(nil, ids)
	var links []job.Link

	next := head
	err := sql.Each(db.Reader(ctx), "read unchained audit lines", func(rows *sql.Rows) error {
		var e job.Entry
		if err := sql.ScanAudit(rows, &e); err != nil {
			return err
		}
		next = next.Next(&e)
		links = append(links, next)
		return nil
	}, `SELECT `+sql.AuditColumns+`
		FROM audit a FORCE INDEX (PRIMARY)
		WHERE a.id IN `+list+`
			AND NOT EXISTS (SELECT 1 FROM audit_chain c FORCE INDEX (line) WHERE c.line = a.id)
		ORDER BY a.id`, args...)
	if err != nil || len(links) == 0 {
		return head, err
	}

	err = db.Tx(ctx, func(tx *sql.Tx) error {
		args := make([]any, 0, 4*len(links))
		for i := range links {
			l := &links[i]
			args = append(args, l.Seq, l.Line, int64(l.At), l.Hash[:])
		}
		_, err := tx.Exec("extend audit chain",
			"INSERT INTO audit_chain (seq, line, at, hash) VALUES "+sql.Values(len(links), 4), args...)
		return err
	})
	if sql.IsDuplicate(err) {
		err = fmt.Errorf("extend audit chain behind %d: %w", head.Seq, sql.ErrMoved)
	}
	if err != nil {
		return head, err
	}
	return next, nil
}

// chainRow is a link with its audit line.
type chainRow struct {
	job.Link
	Entry job.Entry
	Gone  bool // the line does not exist
}

// readChain calls fn for up to limit links after a number, in order. It leaves out stray links.
func readChain(r sql.Reader, after int64, limit int, fn func(*chainRow) error) error {
	return sql.Each(r, "read audit chain", func(rows *sql.Rows) error {
		var r chainRow
		e := &r.Entry
		err := scanLink(rows, &r.Link, &r.Gone, &e.ID, &e.At, &e.Who, &e.Origin, &e.Action, &e.Kind, &e.Ref,
			&e.App, &e.Name, &e.Reason, &e.Was, &e.Became)
		if err != nil {
			return err
		}

		return fn(&r)
	}, `SELECT `+linkColumns+`, a.id IS NULL,
			COALESCE(a.id, 0), COALESCE(a.at, 0), COALESCE(a.who, ''), COALESCE(a.origin, ''),
			COALESCE(a.action, ''), COALESCE(a.kind, ''), COALESCE(a.ref, 0), COALESCE(a.app, ''),
			COALESCE(a.name, ''), COALESCE(a.reason, ''), COALESCE(a.was, ''), COALESCE(a.became, '')
		FROM audit_chain c FORCE INDEX (PRIMARY)
		LEFT JOIN audit a FORCE INDEX (PRIMARY) ON a.id = c.line
		WHERE c.seq > ? AND c.seq <= ?
		ORDER BY c.seq
		LIMIT ?`,
		max(after, 0), reach(max(after, 0)), limit)
}

// dropLines deletes a list of lines, with one lookup by primary key for each. With "IN (…)", MySQL
// would ignore the index hint if the table is not much longer than the list. It would read the
// whole table and wait for locked rows.
const dropLines = `
	DELETE t
	FROM JSON_TABLE(?, '$[*]' COLUMNS (id BIGINT PATH '$')) n
	STRAIGHT_JOIN audit t FORCE INDEX (PRIMARY) ON t.id = n.id`

// Drop removes audit lines that were written before an instant, from the start of the chain, and
// returns their number. It removes up to limit lines, or one more. The last removed line keeps its
// link, because the verification of the remaining lines begins with the hash of this link. If two
// nodes call Drop at once, only one of them removes lines.
func Drop(ctx context.Context, db *sql.DB, before job.Micros, limit int) (removed int, err error) {
	var old []job.Link
	err = sql.Each(db.Reader(ctx), "find old audit lines", func(rows *sql.Rows) error {
		var l job.Link
		err := scanLink(rows, &l)
		if err == nil && (len(old) == 0 || old[len(old)-1].At < before) {
			old = append(old, l)
		}
		return err
	}, `SELECT `+linkColumns+`
		FROM audit_chain c FORCE INDEX (PRIMARY)
		WHERE c.seq > 0
		ORDER BY c.seq
		LIMIT ?`, limit+1)
	if err != nil {
		return 0, err
	}

	if n := len(old); n > 0 && old[n-1].At >= before {
		old = old[:n-1]
	}
	if len(old) == 0 {
		return 0, nil
	}

	lines := make([]int64, len(old))
	for i, l := range old {
		lines[i] = l.Line
	}
	slices.Sort(lines)

	base := old[len(old)-1].Seq

	err = db.Tx(ctx, func(tx *sql.Tx) error {
		removed = 0
		for part := range slices.Chunk(lines, 3200) {
			numbers, _ := json.Marshal(part) // numbers cannot fail
			n, err := tx.Exec("drop old audit lines", dropLines, string(numbers))
			if removed += int(n); err != nil {
				return err
			}
		}
		_, err := tx.Exec("drop old links",
			"DELETE c FROM audit_chain c FORCE INDEX (PRIMARY) WHERE c.seq > 0 AND c.seq < ?", base)
		return err
	})
	return removed, err
}
