// Package feed reports changes in the cluster to subscribers.
//
//	ending  ┐
//	audit   │ one reader per node, every half second, while there are listeners
//	run     ├──────────────▶ ring of events ──▶ listeners, each at its own place
//	session │
//	backfill┘
//
// Nothing is written for it. The reader reads the rows that the trip of a run and the audit leave,
// at the ends of indexes and without locks. Without listeners there is no reader.
//
// Ids are assigned when rows are inserted, but rows become visible when their transactions commit.
// So an id may be seen before a smaller one. A trail remembers the missing ids, and the reader
// looks for each until no transaction can still commit it (see internal/trail). Thus a reader
// reports everything, and reports it once.
//
// A listener holds no events, only a place in the ring. If it returns after the ring has moved past
// that place, it must reload everything. So a slow listener costs nothing and delays no other.
//
// While the database is away, the reader tries again, and then continues where it was. If there is
// too much to read by then, listeners must reload everything.
package feed
