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

// pool keeps connections to servers that were called. It hands them out itself, rather than net/http, for two reasons:
// between having a connection and using it the attempt must be asked whether it may still begin; and a Transport
// repeats a request whose connection broke if it takes it for idempotent, which is up to the job's retry policy.
//
//	take: an idle one, or a new one ──▶ one request ──▶ done: idle again, or closed
//
// An HTTP/1 connection has one request at a time and is in the pool only while it has none. One of HTTP/2 stays in the
// pool, and is taken by many, until it is full; but its first request it has alone, since only with the first answer we
// know how many the server lets there be.
type pool struct {
	guard *guard
	plain *http.Transport // makes connections without TLS options, and keeps none
	keep  time.Duration   // how long a used connection is kept

	mu       sync.Mutex
	idle     map[destination][]*conn // the last one was used last
	sweeping *time.Timer             // nil: there is nothing to sweep
	kept     int                     // conns in idle
}

// How long connections are kept. Servers close idle ones, some after two seconds; a request that crosses such a close
// is lost, and nobody knows whether it was carried out, so ours go before. One that had no request yet is waited for
// by the server: it is kept longer, for an attempt that came too late because connecting took so long.
const (
	keepUsed   = time.Second
	keepUnused = 10 * time.Second
	mostKept   = 1024
)

func newPool(g *guard) *pool { return &pool{guard: g, plain: newTransport(g, nil), keep: keepUsed} }

// newTransport returns what makes connections: without a proxy, whatever the environment says, because the guard would
// see only the proxy's address.
func newTransport(g *guard, cfg *tls.Config) *http.Transport {
	return &http.Transport{
		DialContext:            g.dial,
		TLSClientConfig:        cfg,
		TLSHandshakeTimeout:    connectTimeout,
		ForceAttemptHTTP2:      true,
		DisableCompression:     true, // what is kept is little, and what was sent
		MaxResponseHeaderBytes: maxAnswerHeader,
		IdleConnTimeout:        keepUnused, // of HTTP/2 connections that left the pool while they were full
		HTTP2:                  &http.HTTP2Config{SendPingTimeout: 15 * time.Second, PingTimeout: connectTimeout},
	}
}

// destination is what a connection is good for.
type destination struct {
	scheme, addr string            // host:port
	tls          [sha256.Size]byte // zero: no options
}

// conn is a connection, and what the pool knows of it.
type conn struct {
	*http.ClientConn
	to     destination
	listed bool      // in idle
	used   bool      // by a request
	since  time.Time // when it was there, or used last
}

// take returns a connection with room for one request, which is reserved. options makes the TLS configuration for a
// new one; nil: there are none.
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

// done gives a connection back whose request is over, and its answer read; or whose reservation was released.
func (p *pool) done(c *conn, used bool) {
	p.mu.Lock()
	c.since, c.used = time.Now(), c.used || used
	p.list(c)
	over := !c.listed && c.InFlight() == 0
	p.mu.Unlock()
	if over {
		_ = c.Close() // it is of no use any more
	}
}

// list needs mu. It puts a connection into the pool that has room for a request.
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

// unlist needs mu. It takes the connection at a place of its destination's list out of the pool.
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

// sweep closes what was idle for long enough, as often as there is something.
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

// drop takes the connections without a request out of the pool for which which is true.
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
