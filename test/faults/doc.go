// Package faults holds the fault suite: real node processes, each with a separate fault proxy, a
// real database server, and a ledger outside the server that every command writes to. A scenario
// breaks something, repairs it, and compares schedule, history and ledger, due time by due time.
//
// The scenarios are tests with the build tag "faults", so `go test ./...` leaves them out. `make
// faults` runs them, `make faults LONG=1` repeats them more often, and `make soak` injects random
// faults for hours. docs/internals/reliability.md lists the fault, the promise and the measurements
// of every scenario.
//
// Each scenario prints a line: its number, its fault, the figures, PASS or FAIL. All random choices
// follow from GOCRONTAB_FAULTS_SEED, which every line repeats.
package faults
