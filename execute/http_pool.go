package execute

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"fmt"
	"net/http"
	"sync"
	"time"
)

// pool keeps connections to the servers of earlier requests. It replaces net/http's pool for two
// reasons. The attempt must check that it may still begin when it has a connection, before it uses
// the connection. And when a connection breaks, a Transport repeats a request that seems
// idempotent, but only the job's retry policy may decide that.
//
//	take: an idle one, or a new one ──▶ one request ──▶ done: idle again, or closed
//
// An HTTP/1 connection has one request at a time. It is in the pool only while it has no request.
// An HTTP/2 connection stays in the pool for many requests until it is full. It carries its first
// request alone, because only the first answer shows how many requests the server allows.
type pool struct {
	guard *guard
	plain *http.Transport // makes connections without TLS options, and keeps none
	keep  time.Duration   // idle time after which a used connection is closed

	mu       sync.Mutex
	idle     map[destination][]*conn // the most recently used one last
	sweeping *time.Timer             // nil: nothing to sweep
	kept     int                     // number of conns in idle
}

// Limits of kept connections. Servers close idle connections, some after two seconds. A request
// that crosses such a close is lost, and may or may not have been processed. So we close our
// connections earlier. An unused connection was ready too late for its attempt. It is kept longer,
// for the next attempt, because a server waits for the first request of a new connection.
const (
	keepUsed   = time.Second
	keepUnused = 10 * time.Second
	mostKept   = 1024
)

func newPool(g *guard) *pool { return &pool{guard: g, plain: newTransport(g, nil), keep: keepUsed} }

// newTransport returns a transport that makes connections. It ignores the environment's proxy:
// with a proxy, the guard would see only the proxy's address.
func newTransport(g *guard, cfg *tls.Config) *http.Transport {
	return &http.Transport{
		DialContext:            g.dial,
		TLSClientConfig:        cfg,
		TLSHandshakeTimeout:    connectTimeout,
		ForceAttemptHTTP2:      true,
		DisableCompression:     true, // little of an answer is kept, in the form that the server sent
		MaxResponseHeaderBytes: maxAnswerHeader,
		IdleConnTimeout:        keepUnused, // for HTTP/2 connections that left the pool while they were full
		HTTP2:                  &http.HTTP2Config{SendPingTimeout: 15 * time.Second, PingTimeout: connectTimeout},
	}
}

// destination identifies connections that can replace each other.
type destination struct {
	scheme, addr string            // host:port
	tls          [sha256.Size]byte // zero: no options
}

// conn is a connection with the pool's notes.
type conn struct {
	*http.ClientConn
	to     destination
	listed bool      // it is in idle
	used   bool      // it has had a request
	since  time.Time // when it was made, or used last
}

// take returns a connection with one request reserved. options makes the TLS configuration of a
// new connection; nil: the default configuration.
func (p *pool) take(ctx context.Context, to destination, options func() (*tls.Config, error)) (*conn, error) {
	if c := p.takeIdle(to); c != nil {
		return c, nil
	}

	t := p.plain
	if options != nil {
		cfg, err := options()
		if err != nil {
			return nil, err
		}
		t = newTransport(p.guard, cfg)
	}

	cc, err := t.NewClientConn(ctx, to.scheme, to.addr)
	if err != nil {
		return nil, err
	}

	c := &conn{ClientConn: cc, to: to, since: time.Now()}
	if err := cc.Reserve(); err != nil {
		_ = cc.Close() // it is closed already
		return nil, fmt.Errorf("the connection was closed at once: %w", err)
	}
	return c, nil
}

func (p *pool) takeIdle(to destination) *conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	for list := p.idle[to]; len(list) > 0; list = p.idle[to] {
		c := list[len(list)-1]
		ok := c.Reserve() == nil
		if !ok || !c.used || c.Available() == 0 {
			p.unlist(len(list)-1, to)
		}
		if ok {
			return c
		}
		if c.InFlight() == 0 {
			go c.Close() // it may wait for a server that does not read
		}
	}
	return nil
}

// done gives back a connection after its answer was read or its reservation was released.
func (p *pool) done(c *conn, used bool) {
	p.mu.Lock()
	c.since, c.used = time.Now(), c.used || used
	p.list(c)
	over := !c.listed && c.InFlight() == 0
	p.mu.Unlock()

	if over {
		_ = c.Close()
	}
}

// list needs mu. It adds a connection to the pool if it has room for a request.
func (p *pool) list(c *conn) {
	if c.listed || c.Available() == 0 || p.kept >= mostKept {
		return
	}
	if p.idle == nil {
		p.idle = map[destination][]*conn{}
	}

	c.listed = true
	p.idle[c.to] = append(p.idle[c.to], c)
	p.kept++
	if p.sweeping == nil {
		p.sweeping = time.AfterFunc(p.keep, p.sweep)
	}
}

// unlist needs mu. It removes connection i of a destination from the pool.
func (p *pool) unlist(i int, to destination) {
	list := p.idle[to]
	list[i].listed = false
	copy(list[i:], list[i+1:])
	list[len(list)-1] = nil
	p.kept--
	if p.idle[to] = list[:len(list)-1]; len(list) == 1 {
		delete(p.idle, to)
	}
}

// sweep closes connections that were idle too long, and runs again while the pool has any.
func (p *pool) sweep() {
	for _, c := range p.drop(func(c *conn) bool {
		keep := p.keep
		if !c.used {
			keep = keepUnused
		}
		return time.Since(c.since) >= keep
	}) {
		_ = c.Close()
	}

	p.mu.Lock()
	defer p.mu.Unlock()
	if p.kept == 0 {
		p.sweeping = nil
		return
	}
	p.sweeping.Reset(p.keep / 4)
}

// drop removes connections from the pool and returns them. It takes those that `which` selects and
// that have no request under way.
func (p *pool) drop(which func(*conn) bool) []*conn {
	p.mu.Lock()
	defer p.mu.Unlock()

	var out []*conn
	for to := range p.idle {
		for i := len(p.idle[to]) - 1; i >= 0; i-- {
			if c := p.idle[to][i]; c.InFlight() == 0 && which(c) {
				p.unlist(i, to)
				out = append(out, c)
			}
		}
	}
	return out
}
