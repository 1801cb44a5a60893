package api

import (
	"cmp"
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync"
	"time"

	"go-crontab/internal/auth"
)

// limited bounds the number of open connections. At the bound a new connection replaces a quiet
// one, so idle connections shut out no other client.
//
// A connection is quiet unless it carries a request of an authenticated caller. So an answer to a
// stranger may be cut off, but never a stream or change of a token holder. The address with the
// most quiet connections loses one. So a flood from one address hurts only that address, and a
// proxy or a browser may hold many connections while there is room. If no connection is quiet, a
// new connection waits until another one is closed or becomes quiet. It does not wait forever,
// because every request has a deadline.
type limited struct {
	net.Listener
	most   int
	closed chan struct{}
	close  func() error
	freed  chan struct{} // has one slot; it signals that a connection was closed or became quiet

	mu   sync.Mutex
	open map[*connection]bool
}

// connection is an accepted connection. The mutex of limited guards its fields.
type connection struct {
	net.Conn
	owner   *limited
	address string
	active  bool      // in a request, from any caller
	known   int       // requests with a valid token or login
	since   time.Time // when active last changed
}

func limitConnections(l net.Listener, most int) *limited {
	n := &limited{
		Listener: l, most: most, closed: make(chan struct{}), freed: make(chan struct{}, 1),
		open: map[*connection]bool{},
	}
	n.close = sync.OnceValue(func() error { close(n.closed); return l.Close() })
	return n
}

func (l *limited) Accept() (net.Conn, error) {
	raw, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}

	host, _, _ := net.SplitHostPort(raw.RemoteAddr().String())
	c := &connection{Conn: raw, owner: l, address: auth.AddressKey(host), since: time.Now()}
	for {
		loser, entered := l.enter(c)
		if loser != nil {
			loser.Conn.Close()
		}
		if entered {
			return c, nil
		}

		select {
		case <-l.freed:
		case <-l.closed:
			raw.Close()
			return nil, net.ErrClosed
		}
	}
}

func (l *limited) Close() error { return l.close() }

// enter counts a connection. At the bound the connection takes the place of the loser, which the
// caller must close. Without a loser, enter does not count the connection.
func (l *limited) enter(c *connection) (loser *connection, entered bool) {
	l.mu.Lock()
	defer l.mu.Unlock()

	if len(l.open) >= l.most {
		if loser = l.loser(); loser == nil {
			return nil, false
		}
		delete(l.open, loser)
	}

	l.open[c] = true
	return loser, true
}

// loser picks the quiet connection to close, from the address with the most quiet connections.
// Connections without a request go first. Of equal connections, the one that has been in its state
// the longest goes first.
func (l *limited) loser() *connection {
	quiet := map[string]int{}
	for c := range l.open {
		if c.known == 0 {
			quiet[c.address]++
		}
	}

	var first *connection
	for c := range l.open {
		if c.known == 0 && (first == nil || before(c, first, quiet)) {
			first = c
		}
	}

	return first
}

func before(a, b *connection, quiet map[string]int) bool {
	if n := cmp.Compare(quiet[b.address], quiet[a.address]); n != 0 {
		return n < 0
	}
	if a.active != b.active {
		return b.active
	}
	return a.since.Before(b.since)
}

// wake makes a waiting Accept check again.
func (l *limited) wake() {
	select {
	case l.freed <- struct{}{}:
	default:
	}
}

// Close frees the connection's place.
func (c *connection) Close() error {
	l := c.owner
	l.mu.Lock()
	delete(l.open, c)
	l.mu.Unlock()
	l.wake()
	return c.Conn.Close()
}

// hold protects the connection for a request of an authenticated caller, until release is called.
func (c *connection) hold() (release func()) {
	add := func(n int) {
		c.owner.mu.Lock()
		defer c.owner.mu.Unlock()
		c.known += n
	}

	add(1)
	return func() { add(-1); c.owner.wake() }
}

// connectionOf returns the limited connection inside a connection of the HTTP server, or nil.
func connectionOf(c net.Conn) *connection {
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	own, _ := c.(*connection)
	return own
}

// connState is a hook of http.Server. It records which connections have a request.
func connState(raw net.Conn, state http.ConnState) {
	c := connectionOf(raw)
	if c == nil || state != http.StateActive && state != http.StateIdle {
		return
	}
	c.owner.mu.Lock()
	defer c.owner.mu.Unlock()
	c.active, c.since = state == http.StateActive, time.Now()
}

// connectionKey is the key under which a context holds the request's connection.
type connectionKey struct{}

// connContext is a hook of http.Server. It makes the connection available to its requests.
func connContext(ctx context.Context, raw net.Conn) context.Context {
	if c := connectionOf(raw); c != nil {
		return context.WithValue(ctx, connectionKey{}, c)
	}
	return ctx
}

// holdConnection protects the connection of a request until release is called: no new connection
// can replace it.
func holdConnection(r *http.Request) (release func()) {
	if c, ok := r.Context().Value(connectionKey{}).(*connection); ok {
		return c.hold()
	}
	return func() {}
}
