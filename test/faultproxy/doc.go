// Package faultproxy is a TCP proxy for tests that stands between a node and its MySQL or MariaDB server and
// breaks the conversation in chosen places: the COMMIT that never arrived, the acknowledgement that got lost, the
// COMMIT that arrives when everybody has stopped waiting for it, a deadlock, a partition without a goodbye.
//
// A connection is four goroutines around two queues:
//
//	        readClient ─── rules ──▶ queue ─── network faults ──▶ pump
//	client                                                              server
//	        pump ◀── network faults ─── queue ◀── reply rules ─── readServer
//
// The readers take the streams apart into packets, so a [Rule] sees whole commands with the transaction they stand
// in, and the first packet of the reply to each. The pumps know bytes and instants only; what [Proxy.Delay],
// [Proxy.Slow], [Proxy.Blackhole] and [Proxy.ResetAfter] do happens there. The end of a stream travels in the same
// queue as its bytes: behind a black hole a client that hangs up still looks alive to the server, which keeps its
// locks, exactly as in a silent partition.
//
// What is understood of the protocol: packet framing, the text of queries and prepared statements, and where a
// reply begins. A packet from the client with sequence number 0 begins a command, which leaves the handshake, its
// authentication exchange and LOAD DATA LOCAL out without knowing them. Where a reply ends is never needed. TLS,
// compression and query attributes are struck from the server's greeting, so no client asks for them.
//
// Transactions are recognised by the statements which begin and end them in so many words, and by the first statement
// on a connection that has said SET autocommit=0; implicit commits and several statements in one query are not looked
// into.
package faultproxy
