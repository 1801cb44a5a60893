package read

import (
	"go-crontab/job"
	"go-crontab/sql"
)

// lineColumns are the columns of audit lines without the definitions.
const lineColumns = "id, at, who, origin, action, kind, ref, app, name, reason, '', ''"

// LinesAfter lists audit lines with higher ids, by id, without definitions.
func LinesAfter(r sql.Reader, after int64, limit int) ([]job.Entry, error) {
	return lines(r, "id > ? ORDER BY id LIMIT ?", after, limit)
}

// LinesIn lists the audit lines in spans of ids, without definitions.
func LinesIn(r sql.Reader, spans []sql.Span) ([]job.Entry, error) {
	cond, args := sql.Within(spans)
	return lines(r, cond+" ORDER BY id", args...)
}

func lines(r sql.Reader, cond string, args ...any) ([]job.Entry, error) {
	return sql.Select(r, "read audit", sql.ScanEntry, `
		SELECT `+lineColumns+`
		FROM audit FORCE INDEX (PRIMARY)
		WHERE `+cond, args...)
}
