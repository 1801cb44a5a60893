// Package result finishes runs: it writes their ends.
//
//	recorder.go gathers ends, and writes independent ones in one statement
//	together.go writes the others in one transaction: next attempts, slots, and the runs that come next
//	wishes.go   finds executing runs that must be killed
//	reaper.go   ends the runs of dead sessions
//	live.go     writes output while runs execute
//	spool.go    keeps ends in a file while MySQL is away
//	retain.go   removes expired runs; archive.go hands them over first
//	trim.go     keeps apps within their limit of kept output
//	tidy.go     removes expired requests, audit lines and notes
//	figures.go  counts starts and ends for the console
//
// An end is independent if no run waits for it, the run holds no slot, and there is no retry. One
// guarded UPDATE writes it. The guard is in the row itself (columns awaited and grp). A run that
// begins to wait marks the row of the run that it waits for. So an end that does not find the mark
// was written before the mark.
package result
