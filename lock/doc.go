// Package lock keeps rows and sets in step: rows first, sets second, nobody between.
//
// A run that a node holds stands in two places: its row in MySQL, and the node's prepared or
// executing set in memory. [Exclusion.Do] is the only way to change both. It writes the rows in one
// transaction, waits until it is known whether that transaction stands (settling an unknown commit
// by a locking read, for as long as it takes), and only then changes the sets, all inside a
// process-level exclusion.
//
// Transitions of different runs do not disturb each other and hold the exclusion together. Whoever
// compares rows with sets (compensation) or throws the sets away (the end of a session) holds it
// alone ([Exclusion.Alone]), and so never sees a row whose set change is still to come.
//
// The InnoDB row locks that Do takes only keep nodes out of each other's way. Correctness rests on
// guarded updates and unique keys, which hold also where a lock is lost.
package lock
