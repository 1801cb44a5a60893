// Package trip holds the statements that move runs. A run is one attempt at one due time of a job, and it is one row from
// its claim until retention removes it:
//
//	 job ──claim──▶ prepared ──start──▶ executing ──finish──▶ ended
//	 (cursor)        ▲    │ refuse                              ▲
//	                 │    ├─────────────────────────────────────┤
//	idle ────take────┘    └─▶ waiting ──wake──▶ idle            │
//	(retries, runs by hand, backfills)                          │
//	                      executing, session dead ───lose───────┘
//
// Beside them stand the rows that several stages read or lock together with jobs: calendars, limits of apps, what people said about
// nodes, rules of retention, names of secrets, and what jobs refer to.
//
// Every state change names what it expects: id, owner, state and claim count. A row that is not as expected is not changed,
// and the caller learns which.
//
// Lock order of a transaction: bucket locks ascending, groups, jobs ascending, runs ascending, inserts.
//
// Lists of whole numbers travel as text inside a statement. Thousands of placeholders cost the server and the node more
// than the work itself.
package trip
