// Package schedule claims due times and starts them.
//
//	claim.go    moves the cursors of jobs and inserts their next runs as prepared
//	prepared.go holds the prepared runs of this session, by the instant of the next look at each
//	start.go    takes the runs that are due from there, and makes one transaction of them:
//	scene.go      reads, in lock order, everything that the verdicts need
//	judge.go      gives each run a verdict, by pure policies; those in overlap.go, slot.go and stops.go too
//	write.go      writes the verdicts, and wakes the runs that come next
//	overdue.go  finds idle runs that are due, and prepared ones that their owner did not start in time, and starts them here
//	homeless.go ends runs that no living node may run, once it is too late for them
//	idle.go     prepares idle runs ahead of time
//	stops.go    knows what is paused or disabled for many jobs
//
// A prepared run is a lease of seconds. If its owner dies, hangs or loses its link, the run becomes overdue, and any node with a
// free slot starts it: that transaction raises the claim count, so the first owner's start changes no row. Nothing else
// has to be done for prepared runs: a claim with an unknown end is forgotten, and so is everything that a node does not know
// about its own prepared runs.
//
// # Waiting
//
// job.running names the run whose turn it is: it executes, or was woken and goes next, or waits for a slot of its group as the first of
// its job. Other runs of the job are skipped for it, take its place, or wait in the line of the job. A waiting run is state waiting and
// nobody's; its due_now is its place in the line, see package trip. It marks the run that it waits for (awaited) in its own
// transaction, so every end either sees the mark or comes first. Whoever ends a marked run, refuses it, or makes it wait for
// something else wakes the next one in the same transaction. There is no other list of waiting runs, and no sweeper.
//
// A group counts how many of its slots are taken. A start raises the count, the end of the run lowers it: run.grp says which group's. A
// woken run holds no slot; newcomers leave one for it for five seconds. If it does not begin, whoever sees that wakes the next one.
package schedule
