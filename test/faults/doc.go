// Package faults holds the fault suite: real node processes, each behind a fault proxy of its own, a real database
// server, and a ledger outside of it that every command writes to. A scenario breaks something, mends it again, and
// holds schedule, history and ledger against each other, due time by due time.
//
// The scenarios are tests behind the build tag "faults", so that `go test ./...` leaves them out. `make faults` runs
// them, `make faults LONG=1` with more repetitions, `make soak` one random fault after the other for hours.
// docs/internals/reliability.md says what each of them injects, what is promised, and what was measured.
//
// Each scenario prints a line: its number, what it injected, the figures, PASS or FAIL. Whatever is random in it
// follows from GOCRONTAB_FAULTS_SEED, which every line repeats.
package faults
