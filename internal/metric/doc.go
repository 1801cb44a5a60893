// Package metric has what a node tells Prometheus about itself. Its names and what each means are in docs/metrics.md.
//
// What is counted on the trip of a run is an atomic addition and nothing more: of statements and transactions in
// [sql.Meter], of attempts here. Everything else is read when somebody asks.
//
// The number of series is bounded, whatever the number of jobs: by outcomes, stages of the trip, pools, and routes. Jobs
// have series of their own only if they ask for them by a label, and then no more of them than a setting says.
package metric
