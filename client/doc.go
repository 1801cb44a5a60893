// Package client speaks the HTTP API of a cluster, from Go programs that have no node of their own.
//
//	c, err := client.New("http://127.0.0.1:8610")
//	j, err := c.Put(ctx, job.Spec{Name: "backup", Schedule: "0 3 * * *", Command: "pg_dump shop"})
//	run, err := c.RunAndWait(ctx, j.ID)
//
// What it sends is a job.Spec, what it gets is read leniently: a newer server may say more. Any node will do, and a node
// that cannot answer says so with a [Problem] of status 503, for which there is [IsAway]. Nothing is repeated by itself;
// what may be repeated without harm says so.
package client
