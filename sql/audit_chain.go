package sql

import (
	"context"
	stdsql "database/sql"
	"fmt"
	"math"
	"slices"

	"go-crontab/job"
)

// The audit is chained lazily. A chain that grew in the transactions of the changes would have them all wait for one row.
// So one node reads the lines that are not chained yet, and adds a row of audit_chain for each. The primary key keeps two
// nodes from forking the chain: the second one is told of a duplicate key.

const linkColumns = "c.seq, c.line, c.at, c.hash"

func scanLink(rows *stdsql.Rows, l *job.Link, more ...any) error {
	var hash []byte
	if err := rows.Scan(append([]any{&l.Seq, &l.Line, &l.At, &hash}, more...)...); err != nil {
		return err
	}
	copy(l.Hash[:], hash)
	return nil
}

// linkReach is how far behind its predecessor a link may stand and count as part of the chain: no number of removed links
// leaves such a gap. Whoever may insert can write a row with any number. One with the highest number would leave the chain no
// room, so links beyond the reach are strays: nobody goes on from them, and verification shows them.
const linkReach = 1 << 40

// reach is the number up to which links may follow another one.
func reach(seq int64) int64 { return min(seq, math.MaxInt64-linkReach) + linkReach }

// ChainHead returns the newest link, or the zero Link if there is none.
func (db *DB) ChainHead(ctx context.Context) (head job.Link, err error) {
	for {
		next, err := db.link(ctx, "read head of the audit chain",
			"WHERE c.seq > ? AND c.seq <= ? ORDER BY c.seq DESC LIMIT 1", head.Seq, reach(head.Seq))
		if err != nil || next.Seq == 0 {
			return head, err
		}
		head = next
	}
}

// StrayLinks returns some links that are no part of the chain, which has a given head. What nodes add meanwhile is none.
func (db *DB) StrayLinks(ctx context.Context, head int64, limit int) (out []job.Link, err error) {
	err = db.query(ctx, "look for stray links of the audit chain", func(rows *stdsql.Rows) error {
		var l job.Link
		err := scanLink(rows, &l)
		out = append(out, l)
		return err
	}, "SELECT "+linkColumns+" FROM audit_chain c FORCE INDEX (PRIMARY) WHERE c.seq < 1 OR c.seq > ? ORDER BY c.seq LIMIT ?", reach(head), limit)
	return out, err
}

// ChainBase returns the oldest link, or the zero Link if there is none. Its line may have been removed by age.
func (db *DB) ChainBase(ctx context.Context) (job.Link, error) {
	return db.link(ctx, "read base of the audit chain", "WHERE c.seq > 0 ORDER BY c.seq LIMIT 1")
}

// ChainLink returns the link with a number, or the zero Link if there is none.
func (db *DB) ChainLink(ctx context.Context, seq int64) (job.Link, error) {
	return db.link(ctx, "read link of the audit chain", "WHERE c.seq = ?", seq)
}

// ChainUpTo returns the last link up to a number, or the zero Link if there is none.
func (db *DB) ChainUpTo(ctx context.Context, seq int64) (job.Link, error) {
	return db.link(ctx, "read link of the audit chain", "WHERE c.seq > 0 AND c.seq <= ? ORDER BY c.seq DESC LIMIT 1", seq)
}

// ChainAfter returns the first link, up to a number, whose line was written after an instant, or the zero Link if there is none.
func (db *DB) ChainAfter(ctx context.Context, at job.Micros, last int64) (job.Link, error) {
	return db.link(ctx, "find link of the audit chain", "WHERE c.seq > 0 AND c.seq <= ? AND c.at > ? ORDER BY c.seq LIMIT 1", last, int64(at))
}

func (db *DB) link(ctx context.Context, what, cond string, args ...any) (l job.Link, err error) {
	err = db.query(ctx, what, func(rows *stdsql.Rows) error { return scanLink(rows, &l) },
		"SELECT "+linkColumns+" FROM audit_chain c FORCE INDEX (PRIMARY) "+cond, args...)
	return l, err
}

// ChainedLine is an audit line and whether it is chained.
type ChainedLine struct {
	ID      int64
	At      job.Micros
	Chained bool
}

// ChainedAfter lists audit lines by id, those that come after one.
func (db *DB) ChainedAfter(ctx context.Context, after int64, limit int) ([]ChainedLine, error) {
	return db.chained(ctx, "a.id > ? ORDER BY a.id LIMIT ?", after, limit)
}

// ChainedIn lists the audit lines in spans of ids.
func (db *DB) ChainedIn(ctx context.Context, spans []Span) ([]ChainedLine, error) {
	cond, args := Within(spans)
	return db.chained(ctx, cond+" ORDER BY a.id", args...)
}

func (db *DB) chained(ctx context.Context, cond string, args ...any) ([]ChainedLine, error) {
	var out []ChainedLine
	err := db.query(ctx, "look for unchained audit lines", func(rows *stdsql.Rows) error {
		var l ChainedLine
		err := rows.Scan(&l.ID, &l.At, &l.Chained)
		out = append(out, l)
		return err
	}, "SELECT a.id, a.at, c.seq IS NOT NULL FROM audit a FORCE INDEX (PRIMARY) LEFT JOIN audit_chain c FORCE INDEX (line) ON c.line = a.id WHERE "+cond, args...)
	return out, err
}

// ExtendChain adds links for those of some audit lines that exist and are not chained yet, behind the given head. It returns
// the new head. ErrMoved: another node has added links behind that head.
//
// If we die before the commit, nothing is chained, and the next look finds the lines again. If its reply is lost, the next
// look finds the lines that are chained.
func (db *DB) ExtendChain(ctx context.Context, head job.Link, ids []int64) (job.Link, error) {
	list, args := In(nil, ids)
	var links []job.Link

	next := head
	err := db.query(ctx, "read unchained audit lines", func(rows *stdsql.Rows) error {
		var e job.Entry
		if err := scanAudit(rows, &e); err != nil {
			return err
		}
		next = next.Next(&e)
		links = append(links, next)
		return nil
	}, "SELECT "+auditColumns+" FROM audit a FORCE INDEX (PRIMARY) WHERE a.id IN "+list+
		" AND NOT EXISTS (SELECT 1 FROM audit_chain c FORCE INDEX (line) WHERE c.line = a.id) ORDER BY a.id", args...)
	if err != nil || len(links) == 0 {
		return head, err
	}

	err = db.Tx(ctx, func(tx *Tx) error {
		args := make([]any, 0, 4*len(links))
		for i := range links {
			l := &links[i]
			args = append(args, l.Seq, l.Line, int64(l.At), l.Hash[:])
		}
		_, err := tx.Exec("extend audit chain", "INSERT INTO audit_chain (seq, line, at, hash) VALUES "+Values(len(links), 4), args...)
		return err
	})
	if IsDuplicate(err) {
		err = fmt.Errorf("extend audit chain behind %d: %w", head.Seq, ErrMoved)
	}
	if err != nil {
		return head, err
	}
	return next, nil
}

// ChainRow is a link with its audit line.
type ChainRow struct {
	job.Link
	Entry job.Entry
	Gone  bool // there is no such line
}

// ReadChain passes links that follow a number to fn, in their order, one at a time. It reads no stray links behind the chain.
func (db *DB) ReadChain(ctx context.Context, after int64, limit int, fn func(*ChainRow) error) error {
	return db.query(ctx, "read audit chain", func(rows *stdsql.Rows) error {
		var r ChainRow
		e := &r.Entry
		err := scanLink(rows, &r.Link, &r.Gone, &e.ID, &e.At, &e.Who, &e.Origin, &e.Action, &e.Kind, &e.Ref, &e.App, &e.Name, &e.Reason, &e.Was, &e.Became)
		if err != nil {
			return err
		}
		return fn(&r)
	}, "SELECT "+linkColumns+", a.id IS NULL, COALESCE(a.id, 0), COALESCE(a.at, 0), COALESCE(a.who, ''), COALESCE(a.origin, ''),"+
		" COALESCE(a.action, ''), COALESCE(a.kind, ''), COALESCE(a.ref, 0), COALESCE(a.app, ''), COALESCE(a.name, ''), COALESCE(a.reason, ''),"+
		" COALESCE(a.was, ''), COALESCE(a.became, '')"+
		" FROM audit_chain c FORCE INDEX (PRIMARY) LEFT JOIN audit a FORCE INDEX (PRIMARY) ON a.id = c.line WHERE c.seq > ? AND c.seq <= ? ORDER BY c.seq LIMIT ?",
		max(after, 0), reach(max(after, 0)), limit)
}

// UnchainedLines returns the ids of some audit lines that were written before an instant and are not chained, among the newest.
func (db *DB) UnchainedLines(ctx context.Context, before job.Micros, newest, limit int) ([]int64, error) {
	return db.ids(ctx, "look for unchained audit lines", "SELECT a.id FROM audit a FORCE INDEX (PRIMARY) LEFT JOIN audit_chain c FORCE INDEX (line) ON c.line = a.id"+
		" WHERE a.id > (SELECT COALESCE(MAX(id), 0) FROM audit) - ? AND a.at < ? AND c.seq IS NULL ORDER BY a.id LIMIT ?", newest, int64(before), limit)
}

// NewestLine returns the id of the newest audit line, 0 if there is none.
func (db *DB) NewestLine(ctx context.Context) (id int64, err error) {
	err = db.query(ctx, "read newest audit line", func(rows *stdsql.Rows) error { return rows.Scan(&id) },
		"SELECT COALESCE(MAX(id), 0) FROM audit")
	return id, err
}

// OldestLine is when the oldest audit line was written; zero: there is none.
func (db *DB) OldestLine(ctx context.Context) (at job.Micros, err error) {
	err = db.query(ctx, "read oldest audit line", func(rows *stdsql.Rows) error { return rows.Scan(&at) },
		"SELECT COALESCE((SELECT MIN(at) FROM audit FORCE INDEX (at)), 0)")
	return at, err
}

// DropAudit removes some audit lines that were written before an instant, from the beginning of the chain on, and returns how
// many: where there are more, the limit or one more. The last link stays without its line: its hash is the base from which the
// rest is verified. If two nodes do this at once, one of them removes nothing.
func (db *DB) DropAudit(ctx context.Context, before job.Micros, limit int) (removed int, err error) {
	var old []job.Link
	err = db.query(ctx, "find old audit lines", func(rows *stdsql.Rows) error {
		var l job.Link
		err := scanLink(rows, &l)
		if err == nil && (len(old) == 0 || old[len(old)-1].At < before) {
			old = append(old, l)
		}
		return err
	}, "SELECT "+linkColumns+" FROM audit_chain c FORCE INDEX (PRIMARY) WHERE c.seq > 0 ORDER BY c.seq LIMIT ?", limit+1)
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

	err = db.Tx(ctx, func(tx *Tx) error {
		n, err := tx.Remove("drop old audit lines", "audit", "id", lines)
		if removed = int(n); err != nil {
			return err
		}
		_, err = tx.Exec("drop old links", "DELETE c FROM audit_chain c FORCE INDEX (PRIMARY) WHERE c.seq > 0 AND c.seq < ?", base)
		return err
	})
	return removed, err
}
