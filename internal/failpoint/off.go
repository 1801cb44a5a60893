//go:build !failpoint

package failpoint

// Reads tells whether a variable is for this package, and so for processes that are this program once more.
func Reads(variable string) bool { return false }

// Here is a point.
func Here(when, what string) {}

// Trail is what a transaction has written.
type Trail struct{}

// Before is a point, in front of a statement.
func (*Trail) Before(what string) {}

// Commit is a point for each statement of the transaction, before its COMMIT.
func (*Trail) Commit() {}

// Committed is a point for each of them, behind it.
func (*Trail) Committed() {}
