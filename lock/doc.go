// Package lock keeps rows and sets in step: rows first, sets second, and no other change in
// between.
//
// A run that a node holds is in two places: its row in MySQL, and the node's prepared or executing
// set in memory. [Exclusion.Do] is the only way to change both. It writes the rows in one
// transaction. It waits until the transaction is known to be applied or refused, and settles an
// unknown commit with a locking read, even if that takes long. Only then does it change the sets.
// All this happens inside an exclusion within the process.
//
// Changes of different runs share the exclusion and do not disturb each other. Two changes hold it
// alone ([Exclusion.Alone]): compensation, which compares rows with sets, and the end of a
// session, which drops the sets. So these never see a row whose set has not been changed yet.
//
// The InnoDB row locks that Do takes only avoid conflicts between nodes. Correctness depends on
// guarded updates and unique keys, which hold even if a lock is lost.
package lock
