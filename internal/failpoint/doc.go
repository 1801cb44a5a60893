// Package failpoint kills this process, as kill -9 would, at a chosen place of its code: a test of what the others make
// of that. It is empty, and costs nothing, unless the program is built with the tag "failpoint".
//
// With the tag, GOCRONTAB_FAILPOINT=name:n ends the process at the n-th time that it passes the point of that name, and
// GOCRONTAB_FAILPOINT_LOG=file appends the name of each point there that is passed for the first time. Names have two
// words or more:
//
//	before claim     the transaction is open and the statement "claim" is about to be sent
//	commit claim     all statements of a transaction with "claim" are done, and COMMIT is about to be sent
//	committed claim  … and was answered; nothing else is done yet
//	before fork      and so on: whatever is not a statement of a transaction
//
// So every transaction of package sql has its points by itself, and each new one gets them: TestEveryWriteHasAPoint holds it.
package failpoint
