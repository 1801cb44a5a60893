// Package result finishes runs: it writes how they ended.
//
//	recorder.go gathers ends, and writes those that concern nobody else by one statement
//	together.go writes the others: next attempts, slots, and the runs that come next, in one transaction
//	wishes.go   learns which executing runs are to be killed
//	reaper.go   ends the runs of dead sessions
//	live.go     writes output while runs execute
//	spool.go    keeps ends in a file while MySQL is away
//	retain.go   removes runs that are kept no longer, archive.go hands them over before
//	trim.go     holds apps to their limit of kept output
//	tidy.go     removes requests, audit lines and notes that are kept no longer
//	figures.go  counts starts and ends for people who watch
//
// A run that nobody waits for, that holds no slot and that is not tried again is ended by one guarded UPDATE. The guard is the row
// itself (awaited, grp): whoever begins to wait marks the row, so an end that misses the mark comes before it.
package result
