package sql

import (
	"context"
	stdsql "database/sql"
)

// ofApps is the condition that a column names one of some apps: nil is all of them, an empty list none.
func ofApps(column string, apps []string) (cond string, args []any) {
	switch {
	case apps == nil:
		return "TRUE", nil
	case len(apps) == 0:
		return "FALSE", nil
	}
	list, args := in(nil, apps)
	return column + " IN " + list, args
}

// appOf runs a query for one app; ErrNotFound when there is no row.
func (db *DB) appOf(ctx context.Context, what, query string, args ...any) (app string, err error) {
	found := false
	err = db.query(ctx, what, func(rows *stdsql.Rows) error { found = true; return rows.Scan(&app) }, query, args...)
	if err == nil && !found {
		err = ErrNotFound
	}
	return app, err
}

// restrict adds the condition that a column names one of some apps to others.
func restrict(where *[]string, args *[]any, column string, apps []string) {
	cond, values := ofApps(column, apps)
	*where, *args = append(*where, cond), append(*args, values...)
}
