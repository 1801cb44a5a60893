// Package client calls the HTTP API of a cluster, for Go programs that do not embed a node.
//
//	c, err := client.New("http://127.0.0.1:8610")
//	j, err := c.Put(ctx, job.Spec{Name: "backup", Schedule: "0 3 * * *", Command: "pg_dump shop"})
//	run, err := c.RunAndWait(ctx, j.ID)
//
// The client sends a job.Spec and ignores unknown fields in responses, which a newer server may add.
// Any node will do. Of several nodes the client uses one that answers, see [New]. A node that cannot
// answer returns a [Problem] with status 503; test for it with [IsAway]. The client never repeats a
// change that a node may have carried out, unless the change has a key. Methods that are safe to
// repeat say so.
package client
