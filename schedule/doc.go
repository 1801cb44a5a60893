// Package schedule takes a due time from the definition of its job to the start of its attempt.
//
//	job ──plan──▶ task(idle) ──claim──▶ prepare set ──start──▶ executing set
//	    plan.go                claim.go   prepare.go   start.go
//
// [Planner] writes due times down as idle tasks a little ahead of time, [Claimer] takes those of its slices that
// are due soon into the [Prepared] set, a heap, and [Starter] commits their start just before they are due, so
// that MySQL's latency is no lateness. [Editor] changes jobs and plans them in the same transaction.
//
// # What each failure does
//
// A plan whose commit is refused or unknown is read again at the next look: the cursor says what was planned. A
// claim or a start that is refused changed nothing and is tried again; one that is unknown is settled by a
// locking read before anything else happens to its tasks (package lock). A job that cannot be planned is marked
// and left out until it is edited; it never holds up others.
package schedule
