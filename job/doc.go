// Package job holds the nouns of go-crontab and their arithmetic: jobs, tasks, runs, states, schedules and policies.
//
// It does no I/O, reads no clock and starts no goroutine: an instant always arrives as an argument. Every other
// package may import it; it imports none of them.
//
// A [Job] is a definition: what to run, when, and under which policies. A [Task] is one due time of one job, a
// live row that goes idle → prepare → executing and then leaves. A [Run] is one attempt of a task; its id, the
// [Launch], is minted at the claim and fences every later write.
package job
