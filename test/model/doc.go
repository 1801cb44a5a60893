// Package model searches every state that a run can reach. There is one row per due time and
// attempt, and a run has three steps (claim, start, finish). Overdue prepared runs are taken over,
// and people pause, edit, delete and kill.
//
// # Scope
//
// Two or three nodes share one or two jobs and up to three runs. A World sets the policies, the
// possible faults and their number, and the actions of people. The protocol is a set of Rules. A
// world that keeps every rule has no violation; a rule is needed if a world without it shows a
// violation.
//
// A step is a transaction, a change of a node's memory, or an event of a process. Steps have three
// kinds. Fair steps happen sooner or later as long as they stay possible: the work of a healthy
// node, time, the end of a command. People's steps may happen. Faults are counted.
//
// # Checks
//
// Safety: each state is checked (wrong), and each step flags violations as they happen (flag).
// Progress: the graph of fair steps must have no cycle, and each state without a fair step must be
// finished. So every order of fair steps, not only a lucky one, ends with all runs ended.
//
// The search is breadth first, so each printed trace is a shortest one.
//
// # Left out
//
// The arithmetic of schedules, output and its retention, the number of buckets, batches of more
// than two runs. Nothing here runs in the program. The triggers of test/legal tie the model to the
// code: in tests they refuse every change of a row that no step here makes.
package model
