// Package failpoint kills this process, like kill -9, at a chosen point of the code. Tests use it
// to see how other processes recover. The package is empty and costs nothing unless the program is
// built with the tag "failpoint".
//
// With the tag, GOCRONTAB_FAILPOINT=name:n ends the process when it passes the point of that name
// for the n-th time. GOCRONTAB_FAILPOINT_LOG=file appends the name of every point at its first
// pass. Names have at least two words:
//
//	before claim     the transaction is open and the statement "claim" is about to be sent
//	commit claim     all statements of a transaction with "claim" are done; next is COMMIT
//	committed claim  COMMIT was answered; nothing more is done yet
//	before fork      any other point that is not a statement of a transaction
//
// Every transaction of package sql has its points automatically. TestEveryWriteHasAPoint checks
// that.
package failpoint
