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

// limited holds a bounded number of connections. At the bound a new connection takes the place of a
// quiet one, so that nobody is shut out by connections that are only held open.
//
// A connection is quiet unless it carries a request of somebody who is known: an answer to a
// stranger may be cut off, a stream or a change of a token's holder may not. Of the quiet ones, the
// address that has most of them loses one. So a flood from one address costs only that address, and
// a proxy or a browser may have many connections while there is room. With no quiet connection at
// all, a new one waits: every request has its own bound.
type limited struct {
	net.Listener
	most   int
	closed chan struct{}
	close  func() error
	freed  chan struct{} // has one slot: a connection was closed or became quiet

	mu   sync.Mutex
	open map[*connection]bool
}

// connection is one that a limited listener has accepted. The mutex of its listener guards the
// fields.
type connection struct {
	net.Conn
	owner   *limited
	address string
	active  bool      // in a request, whoever sends it
	known   int       // requests with a valid token or login
	since   time.Time // when active changed last
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

// enter counts a connection. At the bound it takes the place of the loser, which the caller closes;
// without one it does not enter.
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

// loser picks the quiet connection to close: of the address with most quiet ones, one without a
// request before one with a request, and then the one that has been so for longest.
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

// wake has a waiting Accept look again.
func (l *limited) wake() {
	select {
	case l.freed <- struct{}{}:
	default:
	}
}

// Close gives the place back.
func (c *connection) Close() error {
	l := c.owner
	l.mu.Lock()
	delete(l.open, c)
	l.mu.Unlock()
	l.wake()
	return c.Conn.Close()
}

// hold marks a request of somebody who is known. release ends that.
func (c *connection) hold() (release func()) {
	add := func(n int) {
		c.owner.mu.Lock()
		defer c.owner.mu.Unlock()
		c.known += n
	}
	add(1)
	return func() { add(-1); c.owner.wake() }
}

// connectionOf returns the connection below a server's, or nil.
func connectionOf(c net.Conn) *connection {
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	own, _ := c.(*connection)
	return own
}

// connState is for http.Server: it notes which connections have a request.
func connState(raw net.Conn, state http.ConnState) {
	c := connectionOf(raw)
	if c == nil || state != http.StateActive && state != http.StateIdle {
		return
	}
	c.owner.mu.Lock()
	defer c.owner.mu.Unlock()
	c.active, c.since = state == http.StateActive, time.Now()
}

// connectionKey is that of the connection in the context of its requests.
type connectionKey struct{}

// connContext is for http.Server: requests find their connection by it.
func connContext(ctx context.Context, raw net.Conn) context.Context {
	if c := connectionOf(raw); c != nil {
		return context.WithValue(ctx, connectionKey{}, c)
	}
	return ctx
}

// holdConnection keeps the connection of a request from being closed for another one, until
// release.
func holdConnection(r *http.Request) (release func()) {
	if c, ok := r.Context().Value(connectionKey{}).(*connection); ok {
		return c.hold()
	}
	return func() {}
}
