// Package metric holds a node's metrics for Prometheus. docs/metrics.md lists and explains them.
//
// On the trip of a run, counting is an atomic addition and nothing more: [sql.Meter] counts
// statements and transactions, and this package counts attempts. All other values are read when
// they are asked for.
//
// The number of series does not depend on the number of jobs, but on the outcomes, the stages of
// the trip, the pools and the routes. A job has series of its own only if it asks for them by a
// label, and a setting limits the number of such jobs.
package metric
