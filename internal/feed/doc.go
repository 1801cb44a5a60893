// Package feed tells whoever listens what changes in the cluster.
//
//	ending  ┐
//	audit   │ one reader a node, each half second, while somebody listens
//	run     ├──────────────▶ ring of events ──▶ listeners, each at a place of its own
//	session │
//	backfill┘
//
// Nothing is written for it: it reads what the trip of a run and the audit leave behind, by ends of indexes and
// without a lock. While nobody listens there is no reader.
//
// Ids are given to rows when they are inserted, and rows are seen when their transactions commit. So an id may be seen
// before a smaller one: a trail knows the ids that were left out, and the reader looks for them again and again, until
// no transaction can hold them any more (see internal/trail). So nothing is left out, and nothing is told twice by one reader.
//
// A listener holds no events. It has a place in the ring, and when it comes back so late that the ring has gone on
// without it, it is told to load everything anew. So a slow one costs nothing and holds up nobody.
//
// If the database is away, the reader tries again, and goes on where it was. If there is more to read by then than is
// worth telling, listeners are told to load everything anew.
package feed
