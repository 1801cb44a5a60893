// Package sql is the only package that talks to MySQL. It holds what every statement needs:
// connections, transactions, the meaning of errors, migrations, checks of the schema, locks,
// sessions, settings and audit lines.
//
// Most statements are defined next to their users, as functions that take a [Reader] or a [Tx].
// Packages alert, audit, auth, secret, doctor, schedule/edit and result keep the statements of
// their own feature. Shared statements are in two packages. Package trip has those that move runs,
// or lock rows on which changes of jobs depend. Package read has those that answer a question.
//
// # Every write ends applied, refused or unknown
//
// [DB.Tx] runs a function in one READ COMMITTED transaction. A nil error means that the transaction
// is committed. An [Unknown] error means that the reply to COMMIT was lost: the transaction may be
// committed or not, or may even still be on its way. Any other error means that nothing was
// written.
//
// Settle an unknown commit with a locking read of the rows that the transaction would have written.
// A locking read waits for the old transaction. A plain read could overtake it.
//
// # Lock order
//
// folder → setting → locks (ascending) → stops → calendars → groups → jobs (ascending) → limits of
// apps (ascending) → output (ascending) → its parts → runs (ascending) → chunks → inserts; audit
// lines come last. Session rows are never locked together with runs. Starts and ends do not lock
// the limits of apps, so holding such a lock delays no run.
//
// # Time
//
// Instants are microseconds since 1970 UTC. Callers pass them as arguments, from the session's
// reading of MySQL's clock. A few statements read MySQL's clock themselves, such as beats, expiry
// and the notes of ends.
package sql
