// Package cli implements the command line. serve, migrate and dev run parts of the cluster in this
// process or start processes that do. All other commands use only the public HTTP API.
//
// # Exit codes
//
//	0  done
//	1  failed: MySQL or the server out of reach, a run that did not succeed
//	2  usage: the command line, a GOCRONTAB_ variable or the DSN makes no sense
//	3  not found: no such job or run
//	4  refused: the definition is invalid, the name is taken, or the node may not join its cluster
//	5  not authorised: the token is missing or not valid, or does not allow it
//	124  --wait-timeout has passed
//
// # Settings
//
// Every flag of serve, and --dsn of all commands, also has a variable GOCRONTAB_<FLAG>. For a
// secret, GOCRONTAB_<FLAG>_FILE may name a file with the value. The flag wins over the variable,
// and the variable over the file. An empty variable counts as unset.
//
// # Output
//
// Results go to stdout, everything else to stderr. Only on a terminal, output has colours, and
// tables fit the width.
//
// # Failures in dev
//
//   - A node dies: its peers take over. It restarts after a while, or immediately if it exited by
//     itself.
//   - The database dies: it restarts on the same data, and the nodes wait for it.
//   - dev dies, for any reason: each node sees the end of its standard input and drains, and the
//     database's watcher stops the database. The next dev waits for them and continues with the
//     same data.
package cli
