// Package job holds the nouns of go-crontab and their arithmetic: jobs, runs, states, schedules and
// policies.
//
// It does no I/O, reads no clock and starts no goroutine: an instant always arrives as an argument.
// Every other package may import it; it imports only its own subpackage problem.
//
// A [Job] is a definition: what to run, when, and under which policies. A [Run] is one attempt at
// one due time of a job, which goes idle → prepared → executing → ended. Its [Launch], the id and
// the claim count, fences every write.
package job
