// Package sql is the only one that talks to MySQL. It holds what every statement needs: the connection, transactions, what
// each error means, migrations and checks of the schema, locks, sessions, settings, and lines of the audit.
//
// The statements themselves stand beside their users, as functions that take a [Reader] or a [Tx]. A statement of one
// feature is in the package of that feature: alert, audit, auth, secret, doctor, schedule/edit, result. What several
// packages need is in package trip if it moves runs or locks rows that changes of jobs rest on, and in package read if it
// answers a question.
//
// # Every write ends applied, refused or unknown
//
// [DB.Tx] runs a function in one READ COMMITTED transaction. A nil error means that the commit stands. An
// [Unknown] error means that the reply to COMMIT was lost: the transaction may stand, may not, and may even
// still be on its way. Any other error means that nothing of it stands. An unknown commit is settled by a
// locking read of the rows it would have written: a plain read could be overtaken by the old transaction, a locking
// read waits for it.
//
// # Lock order
//
// folder → setting → locks (ascending) → stops → calendars → groups → jobs (ascending) → limits of apps (ascending) →
// runs (ascending) → chunks → inserts; the audit comes last. Session rows are never locked together with runs. Starts and
// ends lock no limits of apps, so nobody who holds one holds up a run.
//
// # Time
//
// Instants are microseconds since 1970 UTC and arrive as arguments, read off MySQL's clock by the session.
// Only beats and expiry ask MySQL for the time inside their statements.
package sql
