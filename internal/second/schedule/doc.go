// Package schedule claims due times and starts them. It is the second edition of the trip, built beside the first one until
// it takes its place.
//
//	claim.go    moves the cursors of jobs and inserts their next runs as prepared
//	prepared.go holds the prepared runs of this session, by the instant of the next look at each
//	start.go    takes the runs that are due from there, and makes one transaction of them:
//	scene.go      reads, in lock order, everything that the verdicts need
//	judge.go      gives each run a verdict, by pure policies
//	write.go      writes the verdicts
//	overdue.go  finds prepared runs that their owner did not start in time, and starts them here
//
// A prepared run is a lease of seconds. If its owner dies, hangs or loses its link, the run becomes overdue, and any node with a
// free slot starts it: that transaction raises the claim count, so the first owner's start changes no row. Nothing else
// has to be done for prepared runs: a claim with an unknown end is forgotten, and so is everything that a node does not know
// about its own prepared runs.
package schedule
