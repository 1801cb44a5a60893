package doctor

import (
	"fmt"
	"time"

	"go-crontab/internal/audit"
	"go-crontab/job"
	"go-crontab/sql"
)

const (
	// manyLinks is the number of latest links that the doctor verifies. The command audit verify
	// verifies all links.
	manyLinks = 5000
	// chainedBy is the time after which an unchained line is reported.
	chainedBy = 5 * time.Minute
	// farLine is an id that no cluster reaches by normal use.
	farLine = 1 << 62
	// removedBy is how long expired lines may stay before they are reported. It is long, because
	// usually only migrate removes them, at each upgrade.
	removedBy = 90 * 24 * time.Hour
)

func auditChain(x *exam) error {
	head, err := audit.Head(x.db.Reader(x.ctx))
	if err != nil {
		return err
	}
	v, err := audit.VerifyAll(x.ctx, x.db.SQL(), head.Seq-manyLinks, audit.Kept)
	if err != nil {
		return err
	}
	if err := x.unchained(); err != nil {
		return err
	}
	if err := x.farLine(); err != nil {
		return err
	}
	if err := x.oldLines(); err != nil {
		return err
	}

	if len(v.Faults) == 0 {
		if v.Links > 0 {
			x.saw = fmt.Sprintf("The newest audit lines are unchanged: links %d (%s) to %d were verified",
				v.From.Seq, day(v.From.At), v.To.Seq)
		}
		return nil
	}
	seen := fmt.Sprintf("link %d of the audit: %s", v.Faults[0].Seq, v.Faults[0].What)
	if n := len(v.Faults); n > 1 {
		seen += fmt.Sprintf("; and %d more faults", n-1)
	}
	x.found(Error, Finding{
		Code: ChainBroken,
		Seen: seen,
		Why: "Nodes never change audit lines, and remove them only by age. " +
			"So they were changed by hand, or the server lost commits.",
		Fix: "Find out who used a MySQL user with write access to the table, " +
			"and compare with a copy of the audit. A changed or removed line cannot be repaired, " +
			"so this finding stays. A link that no node has written can be removed.",
		Commands: []string{"go-crontab audit verify"},
	})
	return nil
}

// unchained reports lines that no node has added to the chain.
func (x *exam) unchained() error {
	const most = 100
	lines, err := unchainedLines(x.db.Reader(x.ctx), x.now.Add(-chainedBy), manyLinks, most)
	if err != nil || len(lines) == 0 {
		return err
	}

	for _, s := range x.live() {
		if x.now.Sub(s.Started) < chainedBy {
			continue
		}
		x.found(Warning, Finding{
			Code: LinesUnchained,
			Seen: fmt.Sprintf("%s written over %s ago and not yet added to the chain; the first is line %d",
				count(len(lines), most, "audit line was", "audit lines were"), chainedBy, lines[0]),
			Why: "Changes to a line can be detected only once it is in the chain.",
			Fix: "The logs of the nodes say why; look for: cannot chain the audit",
		})
		return nil
	}

	return nil // no node has been alive long enough to chain the lines
}

// farLine reports an audit line whose id is so high that the server has few ids left, or none.
// Without free ids no line can be written, so no change is possible.
func (x *exam) farLine() error {
	newest, err := newestLine(x.db.Reader(x.ctx))
	if err != nil || newest <= farLine {
		return err
	}

	x.found(Error, Finding{
		Code: LineInserted,
		Seen: fmt.Sprintf("the newest audit line has the id %d, so it was inserted by hand", newest),
		Why: "Audit lines get ascending ids. After the highest possible id, the server " +
			"rejects every change that needs an audit line.",
		Fix: fmt.Sprintf("As a MySQL user who may change tables: DELETE FROM audit WHERE id > %d; "+
			"ALTER TABLE audit AUTO_INCREMENT = 1; "+
			"(the server takes the next free id). Find out who used a MySQL user that may insert there.",
			int64(farLine)),
	})

	return nil
}

// oldLines reports lines that should have been removed.
func (x *exam) oldLines() error {
	oldest, err := oldestLine(x.db.Reader(x.ctx))
	if err != nil || oldest == 0 || x.now.Sub(oldest) < audit.Kept+removedBy {
		return err
	}

	x.found(Warning, Finding{
		Code: LinesTooOld,
		Seen: fmt.Sprintf("the oldest audit line is from %s, and lines are kept for %d days",
			day(oldest), int(audit.Kept.Hours()/24)),
		Why: "The nodes' user may not remove audit lines, which is intended, and no other user does.",
		Fix: "Run migrate as the user who may change tables: it also removes old lines. " +
			"Run it with each upgrade or once a month.",
		Commands: migrateCommand,
	})

	return nil
}

func day(at job.Micros) string { return at.Time().UTC().Format(time.DateOnly) }

// unchainedLines returns the ids of up to limit unchained audit lines that were written before an
// instant. It looks only at the lines with the newest ids.
func unchainedLines(r sql.Reader, before job.Micros, newest, limit int) ([]int64, error) {
	return sql.IDs(r, "look for unchained audit lines", `SELECT a.id
		FROM audit a FORCE INDEX (PRIMARY)
		LEFT JOIN audit_chain c FORCE INDEX (line) ON c.line = a.id
		WHERE a.id > (SELECT COALESCE(MAX(id), 0) FROM audit) - ? AND a.at < ? AND c.seq IS NULL
		ORDER BY a.id
		LIMIT ?`, newest, int64(before), limit)
}

// newestLine returns the id of the newest audit line, or 0.
func newestLine(r sql.Reader) (id int64, err error) {
	err = sql.Each(r, "read newest audit line", func(rows *sql.Rows) error { return rows.Scan(&id) },
		"SELECT COALESCE(MAX(id), 0) FROM audit")
	return id, err
}

// oldestLine returns when the oldest audit line was written; zero: there is no line.
func oldestLine(r sql.Reader) (at job.Micros, err error) {
	err = sql.Each(r, "read oldest audit line", func(rows *sql.Rows) error { return rows.Scan(&at) },
		"SELECT COALESCE((SELECT MIN(at) FROM audit FORCE INDEX (at)), 0)")
	return at, err
}
