// Package cli is the command line. serve, migrate and dev run parts of the cluster in this process or start processes
// that do; every other command speaks the public HTTP API and nothing else.
//
// # Exit codes
//
//	0  done
//	1  failed: MySQL or the server out of reach, a run that did not succeed
//	2  usage: the command line, a GOCRONTAB_ variable or the DSN makes no sense
//	3  not found: no such job or run
//	4  refused: the definition is invalid, the name is taken, or the node may not join its cluster
//
// # Settings
//
// Every flag of serve, and --dsn of all commands, can be given as GOCRONTAB_<FLAG> too, secrets also as
// GOCRONTAB_<FLAG>_FILE with the path of a file that holds the value. The flag wins over the variable, the variable over
// the file; empty is unset.
//
// # Output
//
// What was asked for goes to stdout, everything else to stderr. Colours, and cutting a table to its width, only happen
// on a terminal.
//
// # What each failure does in dev
//
//   - A node dies: its peers take over; it is started again after a while, at once when it gave up by itself.
//   - The database dies: it is started again on the same data; the nodes wait for it.
//   - dev dies, in whatever way: each node sees the end of its standard input and drains, and the database's watcher
//     ends the database. The next dev waits for them and goes on with the same data.
package cli
