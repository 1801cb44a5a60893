// Package alert tells people what goes wrong, and monitors elsewhere that all is well.
//
//	ending, audit ─trail──┐
//	run, session ─────────┼─ evaluate ─▶ alert ─▶ delivery ─ send ─▶ channel
//	rules, silences ──────┘  (one node)                     (any node)
//
// Nothing of it is on the trip of a run: it reads the rows that the trip leaves behind.
//
// Evaluate. One node at a time looks what has happened: the one that holds the row alert_work. Each step writes that row
// first, with how far it has come, and only if nobody else has written it since it was read; what the step has found is
// written in the same transaction. So a step stands once or not at all, whichever node took it, and if we die the next
// holder goes on from the last step that stands. Ids of rows are given before their transactions commit, so a trail
// knows which ids were left out, and looks for them until no transaction can hold them any more: nothing that commits
// late is left out. Beside that a step looks at what there is now: due times that are late, jobs that do not run, nodes.
// Such a look reads some rows, and the next step goes on; one that fails is put off, and keeps nothing that others find.
//
// An alert is one trouble of one rule: it fires once, is counted when it is seen again, and is over at some time. A
// message (delivery) is made when it fires, when it goes on for longer than the rule's repeat, and when it is over, if the
// rule tells of recoveries. Messages of one rule to one channel that are not under way yet are one message: so a flood
// is one message that says how much more there is.
//
// Send. Any node claims a message that is due, by a guarded update with its session and the number of the try, and sends
// it. If it dies, or the answer is lost, the message is free again after a while, and is sent once more: the outside gets
// it at least once, always with the same key. Channels are limited to a number of messages a minute, counted in the row
// of the channel; each is told by one goroutine of a node at a time, and what waits for those that are busy is not read, so
// one that hangs holds up nobody. An event of PagerDuty waits for those before it of the same alert.
//
// If the database is away nothing is evaluated or sent, and goes on where it was. If more happens than can be told, it is
// counted (alert_work.lost).
package alert
