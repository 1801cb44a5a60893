// Package result turns outcomes into history.
//
//	executing set ──(outcome)──▶ Recorder ──finish──▶ history row, task row gone ──▶ out of the executing set
//
// [Live] writes what attempts print while they execute, so that any node can show it.
//
// A [Recorder] outlives sessions: a run that was killed because its node lost its lease is still written down, if no
// peer was faster. Finishing needs no live session. It locks the task rows, writes runs only for those that are
// still at the launch that ended, and removes them, so no due time ends twice; where the row is gone already, a peer
// has written the run (lost) and ours is dropped with a line in the log.
//
// A finish that is refused is tried again for as long as the node lives, one that is unknown is settled first. What
// is still not written when the node must stop is spooled to a file and written by its next life.
package result
