// Package session is one life of one node process in the cluster.
//
// A [Session] is registered under a fresh UUID, proves that it is alive by beats, and ends by a drain, by its
// own watchdog, or by a peer that buries it. Its id is never used again: a node that lost its session registers
// a new one.
//
//	registered ──▶ fresh ──(no good beat for Stale)──▶ stale ──(… for Kill)──▶ lost
//	                 ▲                                   │                      ▲
//	                 └──────────(a good beat)────────────┘     row is gone ─────┘
//
// # The lease
//
// The lease is counted from the instant at which the last good beat was sent, on a clock that goes on while the
// machine is suspended. While it is stale nothing new is started; when it is lost every command is killed, well
// before a peer may believe the session dead and start its work elsewhere:
//
//	(Kill + Grace + kill latency) × 1.01 < Expiry, and so for End, when the guard kills a node that still does something
//
// [Watchdog] keeps this rule apart from [Heartbeat], so that a connection that hangs cannot keep it from
// looking.
//
// # Expiry
//
// A peer buries a session when its beat counter has not moved for Expiry on the peer's own monotonic clock, and
// its last beat is also older than that by MySQL's clock. Neither a step of MySQL's clock nor a node's wrong
// clock expires anybody.
//
// # Time
//
// [Clock] is MySQL's clock, carried on by the node's monotonic clock between readings. Node wall clocks are
// used for nothing.
package session
