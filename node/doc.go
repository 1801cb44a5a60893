// Package node wires the stages of the trip in their order and runs them: one process of a cluster, or a part of a Go
// program that embeds one.
//
// A [Node] lives from Run to its return. Within that time it may have several sessions: one that is lost (its lease
// lapsed, or a peer buried it) ends, its commands are killed, what it owned is given back, and the node registers anew.
// Clock, pools and the recorder of outcomes outlive sessions; sets, loops, launches and the guard (package guard) belong to
// one.
//
// # Embedding
//
// A program makes a node with New, gives it functions with [Node.Handle], and calls [Node.Run]. Jobs that name the key of
// a function are run on nodes that have it; [Node.Jobs] adds and finds jobs from code. What a function gets and what
// becomes of its errors and panics says [Handler]. With Config.HandlersOnly the program takes no commands and HTTP jobs
// of others. On Linux each node starts its program once more as its guard, which never reaches main: init functions should
// do little, and Config.NoGuard does without. Beside its own there may be nodes of `go-crontab serve` in the cluster. The folder examples/embed has a whole
// program, with the HTTP API over its node.
package node
