// Package feed reports changes in the cluster to subscribers.
//
//	ending  ┐
//	audit   │ one reader per node, every half second, while there are listeners
//	run     ├──────────────▶ ring of events ──▶ listeners, each at its own place
//	session │
//	backfill┘
//
// Nothing is written for the feed. The reader reads rows that runs and changes leave anyway. It
// reads only the ends of indexes, and takes no locks. Without listeners there is no reader.
//
// Ids are assigned when rows are inserted, but rows become visible when their transactions commit.
// So an id may be seen before a smaller one. A trail remembers the missing ids. The reader looks
// for each of them until no transaction can still commit that id (see internal/trail). So a reader
// reports every change exactly once.
//
// A listener holds no events, only a place in the ring. If the ring has dropped the events at that
// place, the listener must reload everything. So a slow listener costs nothing, and delays no
// other listener.
//
// While the database is away, the reader tries again. Afterwards it continues where it stopped. If
// there is too much to read by then, listeners must reload everything.
package feed
