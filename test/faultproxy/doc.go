// Package faultproxy is a TCP proxy for tests. It runs between a node and its MySQL or MariaDB
// server and breaks the conversation in chosen places: a COMMIT that never arrives, an
// acknowledgement that gets lost, a COMMIT that arrives after its client has given up, a deadlock,
// a silent partition.
//
// A connection is four goroutines around two queues:
//
//	        readClient ─── rules ──▶ queue ─── network faults ──▶ pump
//	client                                                              server
//	        pump ◀── network faults ─── queue ◀── reply rules ─── readServer
//
// The readers split the streams into packets. So a [Rule] sees whole commands with their
// transaction, and the first packet of its reply. The pumps know only bytes and instants;
// [Proxy.Delay], [Proxy.Slow], [Proxy.Blackhole] and [Proxy.ResetAfter] act there. The end of a
// stream travels in the same queue as its bytes. So in a black hole a client that hangs up still
// looks alive to the server, which keeps its locks, exactly as in a silent partition.
//
// The proxy understands this much of the protocol: packet framing, the text of queries and prepared
// statements, and where a reply begins. A packet from the client with sequence number 0 begins a
// command. That excludes the handshake, its authentication exchange and LOAD DATA LOCAL without
// parsing them. The proxy never needs to know where a reply ends. It removes TLS, compression and
// query attributes from the server's greeting, so no client asks for them.
//
// The proxy recognises a transaction by the statements that begin and end it explicitly, and by the
// first statement on a connection after SET autocommit=0. It does not see implicit commits, or
// several statements in one query.
package faultproxy
