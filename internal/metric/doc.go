// Package metric holds a node's metrics for Prometheus. docs/metrics.md lists and explains them.
//
// Counting must cost runs next to nothing. [sql.Meter] counts statements and transactions by
// atomic additions, and this package counts attempts. All other values are read only at a scrape.
//
// The number of series depends on the outcomes, the stages of the trip, the pools and the routes,
// but not on the number of jobs. A job has its own series only if it asks for them by a label. A
// setting limits the number of such jobs.
package metric
