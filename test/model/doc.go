// Package model is a search through every state that the trip of a run can get into: one row per due time and attempt,
// three steps (claim, start, finish), takeover of overdue prepared runs, and people who pause, edit, delete and kill.
//
// # What is modelled
//
// Two or three nodes share one or two jobs and up to three runs. A World says which: the policies, the faults that may
// happen and how many of them, what people may do. The protocol is a set of Rules. A world that keeps all of them has
// no violation; a rule is needed if a world without it has one.
//
// A step is one transaction, or one change of a node's memory, or one thing that happens to a process. Steps have three
// kinds: fair steps happen sooner or later as long as they stay possible (the work of a healthy node, time, the end of
// a command), people's steps may happen, and faults are counted.
//
// # What is looked for
//
// Safety: each state is checked (wrong), and each step flags what it breaks while it happens (flag). Progress: the graph
// of fair steps must have no cycle, and each state without a fair step must be finished. So every order of fair steps
// ends with all runs ended, not only a lucky one.
//
// The search is breadth first, so each printed trace is a shortest one.
//
// # What is left out
//
// Arithmetic of schedules, output, retention of output, the number of buckets, the size of a batch beyond two runs.
// Nothing here runs in the program. The triggers of test/legal tie the model to the code: in tests they refuse every change
// of a row that no step here makes.
package model
