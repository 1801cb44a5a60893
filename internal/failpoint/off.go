//go:build !failpoint

package failpoint

// Reads reports whether this package reads an environment variable. Child processes that run this
// program need such variables.
func Reads(variable string) bool { return false }

// Here is a point. It does nothing in this build.
func Here(when, what string) {}

// Trail does nothing in this build. With the tag, it holds the statements that a transaction has
// sent.
type Trail struct{}

// Before is a point before a statement.
func (*Trail) Before(what string) {}

// Commit has a point for each statement of the transaction, before COMMIT.
func (*Trail) Commit() {}

// Committed has a point for each statement of the transaction, after COMMIT.
func (*Trail) Committed() {}
