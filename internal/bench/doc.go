// Package bench measures what a MySQL server carries: it runs nodes as processes of their own on a schema that it makes
// and drops, for a time, and reads from the rows of runs what became of each due time.
//
// A scenario ([Scenarios]) is one way to load a cluster. Its result has the rate, how late starts were, what each fire
// cost in statements, commits, bytes and processor time, and whether the accounting is right: every due time has
// exactly one run that ended. Beside each rate stands what the same machine did in the same minute with nothing of ours in the
// way (a limit), since the speed of a machine that others use changes from one minute to the next.
package bench
