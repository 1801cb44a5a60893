// Package node makes the stages of a run in order, connects and runs them. A node is one process
// of a cluster, or a part of a Go program that embeds it.
//
// A [Node] lives from Run to its return. In that time it may have several sessions. A session is
// lost when its lease lapses or a peer buries it. Then its commands are killed, its runs are
// released, and the node registers a new session. The clock, the pools and the recorder of outcomes
// outlive sessions; the sets, loops, launches and the guard (package guard) belong to a single one.
//
// # Embedding
//
// A program makes a node with New, then gives it functions with [Node.Handle], and calls
// [Node.Run]. Jobs that name the key of a function run on nodes that have it. [Node.Jobs] adds and
// finds jobs from code. [Handler] describes the arguments of a function and the treatment of its
// errors and panics. With Config.HandlersOnly, the program does not take other programs' commands
// and HTTP jobs.
//
// On Linux, each node starts its program a second time as its guard. The guard never reaches main,
// so init functions should do little. Config.NoGuard turns the guard off.
//
// Nodes of `go-crontab serve` may be in the same cluster. The folder examples/embed has a complete
// program, with the HTTP API on top of its node.
package node
