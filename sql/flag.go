package sql

import (
	stdsql "database/sql"
	"fmt"
)

// Flag reads a column that is 0 or 1. A hand may have written anything else there, which counts as
// 1: rows that are read together with it are to be read all the same, and database/sql takes
// nothing but 0 and 1 for a bool.
type Flag bool

// Scan implements the interface of database/sql.
func (f *Flag) Scan(v any) error {
	if n, ok := v.(int64); ok { // nearly always, and without NullInt64, which allocates
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
