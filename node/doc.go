// Package node wires the stages of the trip in their order and runs them: one process of a cluster, or a part of a Go
// program that embeds one.
//
// A [Node] lives from Run to its return. Within that time it may have several sessions: one that is lost (its lease
// lapsed, or a peer buried it) ends, its commands are killed, what it owned is given back, and the node registers anew.
// Clock, pools and the recorder of outcomes outlive sessions; sets, loops and launches belong to one.
package node
