// Package alert tells people when something goes wrong, and tells external monitors that all is
// well.
//
//	ending, audit ─trail──┐
//	run, session ─────────┼─ evaluate ─▶ alert ─▶ delivery ─ send ─▶ channel
//	rules, silences ──────┘  (one node)                     (any node)
//
// Alerts are no part of claims, starts and ends: the package only reads the rows that these leave.
//
// # Evaluate
//
// One node at a time evaluates the rules: the holder of the row alert_work. Each step first writes
// its position to that row, but only if no other node has written the row since it was read. The
// step's findings are written in the same transaction, so a step is applied once or not at all. If
// we die, the next holder continues from the last applied step.
//
// A row gets its id before its transaction commits, so a lower id may appear after a higher one. A
// trail therefore remembers the skipped ids. It looks for each of them until no transaction can
// still commit that id. So it misses no late commit.
//
// A step also looks at the current state: late due times, jobs that do not run, nodes. Such a look
// reads a bounded number of rows, and the next step continues the look. If a look fails, it is
// tried again later, and the other looks go on.
//
// An alert is one problem found by one rule. It fires once, counts each later sighting, and ends
// at some point. A message (delivery) is created when the alert fires, each time it lasts longer
// than the rule's repeat interval, and when it ends, if the rule reports recoveries. Events of one
// rule for one channel join the same message while no node is sending it. So a flood becomes one
// message, which gives the number of further events.
//
// # Send
//
// Any node claims a due message with an update guarded by the message's state and number of tries.
// Then it sends the message. If the node dies or the answer is lost, the message becomes free
// after a while and is sent again. So it arrives at least once, always with the same key. A
// channel takes a limited number of messages a minute, counted in its row. On a node, one
// goroutine at a time sends to a channel. Messages for busy channels are not even read, so a
// channel that hangs delays no other. A PagerDuty event waits for the earlier events of the same
// alert.
//
// # Failures
//
// While the database is away, nothing is evaluated or sent. Afterwards both continue where they
// stopped. Events beyond the limits are only counted (alert_work.lost).
package alert
