// Package audit protects the audit: it chains audit lines by hashes, verifies the chain, and copies
// the lines to a file or to syslog.
//
// The chain shows when someone with write access to the table has changed or removed lines. It
// does not prevent inserted lines. Someone with write access to both tables can recompute the
// whole chain. To detect that, keep a head outside MySQL: each node logs the head every hour, and
// every line of a copy contains it.
package audit
