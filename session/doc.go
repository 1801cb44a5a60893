// Package session implements sessions: a session is one life of a node process in the cluster.
//
// A [Session] is registered with a new UUID, and proves by beats that it is alive. It ends by a
// drain, by its own watchdog, or by a peer that buries it. Its id is never reused: a node that
// lost its session registers a new one.
//
//	registered ──▶ fresh ──(no good beat for Stale)──▶ stale ──(… for Kill)──▶ lost
//	                 ▲                                   │                      ▲
//	                 └──────────(a good beat)────────────┘     row is gone ─────┘
//
// # The lease
//
// The lease is counted from the instant at which the last good beat was sent, on a clock that also
// runs while the machine is suspended. While the lease is stale, no run is started. When it is
// lost, every command is killed. That happens well before a peer may consider the session dead and
// start its work on a different node:
//
//	(Kill + Grace + kill latency) × 1.01 < Expiry
//
// The same rule holds for End, the age of the lease at which the guard kills a node that is still
// active: (End + kill latency) × 1.01 < Expiry.
//
// [Watchdog] enforces this rule separately from [Heartbeat], so that a hanging connection cannot
// delay it.
//
// # Expiry
//
// A peer buries a session if two things hold: the session's beat counter has not moved for Expiry
// on the peer's own monotonic clock, and the time of its last beat is at least as far from MySQL's
// clock. So neither a step of MySQL's clock nor a wrong clock of a node expires a session.
//
// # Time
//
// [Clock] is MySQL's clock, extrapolated between readings with the node's monotonic clock. The wall
// clocks of nodes are not used.
package session
