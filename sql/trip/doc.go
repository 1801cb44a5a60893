// Package trip holds the statements that move runs. A run is one attempt at one due time of a job:
// a single row, from its claim until retention removes it.
//
//	 job ──claim──▶ prepared ──start──▶ executing ──finish──▶ ended
//	 (cursor)        ▲    │ refuse                              ▲
//	                 │    ├─────────────────────────────────────┤
//	idle ────take────┘    └─▶ waiting ──wake──▶ idle            │
//	(retries, runs by hand, backfills)                          │
//	                      executing, session dead ───lose───────┘
//
// The package also holds the rows that several stages read or lock together with jobs: calendars,
// limits of apps, marks on nodes, rules of retention, names of secrets, and references of jobs.
//
// Every state change is guarded by id, owner, state and claim count. A row that does not match
// stays unchanged, and the caller learns that it did.
//
// Lock order of a transaction: calendars, groups, jobs ascending, limits of apps, runs ascending,
// inserts. Package sql has the whole order.
//
// Lists of whole numbers are written into the text of a statement. Thousands of placeholders would
// cost the server and the node more than the work itself.
package trip
