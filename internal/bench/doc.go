// Package bench measures the load that a MySQL server can carry. It runs nodes as separate
// processes on a schema that it makes and drops. It reads the results from the rows of runs.
//
// A scenario ([Scenarios]) loads a cluster in some way. Its result has the rate, the lateness of
// starts, and the cost per fire in statements, commits, bytes and CPU time. The result also says
// whether every due time has exactly one ended run. Some rates come with a limit: the speed of the
// same machine in the same minute without our code. A shared machine changes its speed from one
// minute to the next.
package bench
