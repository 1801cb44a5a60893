package sql

import (
	stdsql "database/sql"

	"go-crontab/job"
)

// RefKind says to what kind of named object a job refers.
type RefKind int8

// The kinds of what jobs refer to.
const (
	RefGroup    RefKind = 1
	RefCalendar RefKind = 2
	RefSecret   RefKind = 3 // also one that is not there: a node may have it
	RefPing     RefKind = 4 // to what it calls when a due time has ended; it has no name here
	RefHandler  RefKind = 5
)

// Referrers lists some of the living jobs that refer to an object, the caller holding its row: no job begins to refer
// to it meanwhile.
func (tx *Tx) Referrers(kind RefKind, name string, limit int) ([]job.Name, error) {
	scan := func(rows *stdsql.Rows) (n job.Name, err error) {
		err = rows.Scan(&n.App, &n.Name)
		return n, err
	}
	return Select(tx, "read references", scan, "SELECT a.name, j.name FROM job_ref r JOIN job j ON j.id = r.job_id JOIN app a ON a.id = j.app_id WHERE r.kind = ? AND r.name = ? AND j.living = 1 ORDER BY j.id LIMIT ?", kind, name, limit)
}
