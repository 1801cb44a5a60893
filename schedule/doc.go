// Package schedule claims due times and starts them.
//
//	claim.go    moves the cursors of jobs and inserts their next runs as prepared
//	prepared.go holds the prepared runs of this session, by the instant of the next look at each
//	start.go    takes the due runs from that set, and makes one transaction of them:
//	scene.go      reads, in lock order, everything that the verdicts need
//	judge.go      gives each run a verdict, by pure policies; more in overlap.go, slot.go and stops.go
//	order.go      holds late runs while an earlier due time of their job has not begun
//	write.go      writes the verdicts, and wakes the runs that come next
//	overdue.go  starts idle runs that are due, and prepared runs that their owner did not start in time
//	homeless.go ends runs that no living node may run, once it is too late for them
//	room.go     counts slots for parallel starts; portion.go starts less on a node that is too slow
//	idle.go     prepares idle runs ahead of time
//	stops.go    knows the pauses and disabled handlers that concern many jobs
//
// A prepared run is a lease of seconds. If its owner dies, hangs or loses its link, the run becomes
// overdue, and any node with a free slot starts it. That transaction raises the claim count, so the
// first owner's start changes no row. Prepared runs need no other recovery: after a claim with an
// unknown commit, a node simply forgets the runs.
//
// # Waiting
//
// job.running names the run that has the turn of its job. This run executes, or was woken and goes
// next, or waits for a slot of its group as the first run of its job. Other runs of the job are
// skipped, replace it, or wait in the line of the job.
//
// A waiting run has state waiting and no owner; due_now is its place in the line (see package
// trip). In its own transaction it marks the run that it waits for as awaited. So an end of that
// run either sees the mark, or precedes it. A transaction that ends a marked run, refuses it, or
// makes it wait for something different also wakes the next run. There is no other list of waiting
// runs, and no sweeper.
//
// A group counts its taken slots. A start raises the count and the end of the run lowers it;
// run.grp names the group. A woken run holds no slot, but new runs leave one free for it for five
// seconds. If the woken run has not begun by then, the first node that notices wakes the next run.
package schedule
