// Package audit protects the audit: it chains audit lines by hashes, verifies the chain, and copies
// the lines to a file or to syslog.
//
// The chain reveals lines that were changed or removed by someone with write access to the table.
// It does not prevent inserted lines, and someone with write access to both tables can recompute
// the whole chain. A head that is kept outside MySQL reveals that: each node logs it every hour,
// and every line of a copy contains it.
package audit
