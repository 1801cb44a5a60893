// Package sql is the only one that talks to MySQL. It holds the connection, what each error means, and every
// statement; transition.go is the state machine of a task on one screen.
//
// # Every write ends applied, refused or unknown
//
// [DB.Tx] runs a function in one READ COMMITTED transaction. A nil error means that the commit stands. An
// [Unknown] error means that the reply to COMMIT was lost: the transaction may stand, may not, and may even
// still be on its way. Any other error means that nothing of it stands. An unknown commit is settled by a
// locking read of the rows it would have written ([Tx.LockTasks] and its like): a plain read could be
// overtaken by the old transaction, a locking read waits for it.
//
// # Lock order
//
// folder → setting → locks (ascending) → pauses → calendars → job rows (ascending) → limits of apps (ascending) → groups →
// task rows (ascending) → places → chunk rows → inserts into history, output, request and audit. Session rows are never
// locked together with task rows. Starts and ends lock no limits of apps, so nobody who holds one holds up a run.
//
// # Time
//
// Instants are microseconds since 1970 UTC and arrive as arguments, read off MySQL's clock by the session.
// Only beats and expiry ask MySQL for the time inside their statements.
package sql
