// Package job holds the nouns of go-crontab and their arithmetic: jobs, runs, states, schedules and
// policies.
//
// The package does no I/O, reads no clock and starts no goroutine: an instant always arrives as an
// argument. Every other package may import it. It imports only its own subpackage problem.
//
// A [Job] is a definition: what to run, when, and under which policies. A [Run] is one attempt at
// one due time of a job. A run goes idle → prepared → executing → ended. A run's [Launch] is its id
// and its claim count. It fences every write: a write with an older launch changes nothing.
package job
