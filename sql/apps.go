package sql

import ()

// ofApps is the condition that a column names one of some apps: nil is all of them, an empty list none.
func ofApps(column string, apps []string) (cond string, args []any) {
	switch {
	case apps == nil:
		return "TRUE", nil
	case len(apps) == 0:
		return "FALSE", nil
	}
	list, args := In(nil, apps)
	return column + " IN " + list, args
}

// restrict adds the condition that a column names one of some apps to others.
func restrict(where *[]string, args *[]any, column string, apps []string) {
	cond, values := ofApps(column, apps)
	*where, *args = append(*where, cond), append(*args, values...)
}
