package sql

import (
	stdsql "database/sql"
	"fmt"
)

// Flag reads a column that is 0 or 1. Any other number was written outside the program and counts
// as 1. database/sql cannot read such a number as a bool, and one bad row would hide all other rows
// of the query.
type Flag bool

// Scan implements the interface of database/sql.
func (f *Flag) Scan(v any) error {
	if n, ok := v.(int64); ok { // the usual case; NullInt64 would allocate
		*f = n != 0
		return nil
	}

	var n stdsql.NullInt64
	if err := n.Scan(v); err != nil {
		return fmt.Errorf("flag: %w", err)
	}

	*f = Flag(n.Int64 != 0)
	return nil
}
