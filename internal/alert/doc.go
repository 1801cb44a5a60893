// Package alert tells people when something goes wrong, and tells external monitors that all is
// well.
//
//	ending, audit ─trail──┐
//	run, session ─────────┼─ evaluate ─▶ alert ─▶ delivery ─ send ─▶ channel
//	rules, silences ──────┘  (one node)                     (any node)
//
// It is not on the trip of a run: it only reads the rows that the trip leaves.
//
// # Evaluate
//
// One node at a time evaluates the rules: the holder of the row alert_work. Each step first writes
// its position to that row, and only if no other node has written the row since it was read. The
// step's findings are written in the same transaction, so a step is applied once or not at all. If
// we die, the next holder continues from the last applied step.
//
// A row gets its id before its transaction commits, so a lower id may appear after a higher one. A
// trail therefore remembers the ids that it has skipped, and looks for each until no transaction
// can still commit it. So it misses no late commit.
//
// A step also looks at the current state: late due times, jobs that do not run, nodes. Such a look
// reads a bounded number of rows, and the next step continues it. A look that fails is tried again
// later, and does not delay the others.
//
// An alert is one problem found by one rule. It fires once, is counted each time it is seen again,
// and ends at some point. A message (delivery) is created when the alert fires, each time it lasts
// longer than the rule's repeat interval, and when it ends, if the rule reports recoveries. Events
// from the same rule for the same channel join the message that is not being sent yet. A flood thus
// becomes one message, which gives the number of further events.
//
// # Send
//
// Any node claims a due message with an update guarded by its state and number of tries, and sends
// it. If the node dies or the answer is lost, the message becomes free after a while and is sent
// again: it arrives at least once, always with the same key. A channel takes a limited number of
// messages a minute, counted in its row. One goroutine of a node sends to a channel at a time, and
// messages for busy channels are not even read, so a channel that hangs delays no other. A
// PagerDuty event waits for the earlier events of the same alert.
//
// # Failures
//
// While the database is away, nothing is evaluated or sent; both continue afterwards where they
// stopped. Events beyond the limits are only counted (alert_work.lost).
package alert
