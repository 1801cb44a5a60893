package faultproxy

import (
	"context"
	"net"
	"sync"
)

// A link is one client's connection and the server's that answers it.
type link struct {
	proxy    *Proxy
	client   net.Conn
	ctx      context.Context // ends when the link is reset
	cancel   context.CancelFunc
	up, down *pipe
	left     chan struct{} // closed when the client has hung up
	dialogue dialogue      // readClient's
	firings  []*firing     // readClient's, until it has ended

	mu      sync.Mutex
	server  net.Conn // nil until dialled
	replies replies
}

func newLink(p *Proxy, id int, client net.Conn) *link {
	ctx, cancel := context.WithCancel(p.ctx)
	return &link{
		proxy:    p,
		client:   client,
		ctx:      ctx,
		cancel:   cancel,
		up:       newPipe(ctx, ToServer, &p.network),
		down:     newPipe(ctx, ToClient, &p.network),
		left:     make(chan struct{}),
		dialogue: dialogue{conn: id},
	}
}

// run serves the connection until both sides are gone.
func (l *link) run() {
	var wg sync.WaitGroup
	wg.Go(l.readClient)
	if server := l.dial(); server != nil {
		wg.Go(func() { l.readServer(server) })
		wg.Go(func() { l.pumpUp(server) })
		wg.Go(l.pumpDown)
	} else {
		l.reset()
	}
	wg.Wait()
	l.reset()
	for _, f := range l.firings {
		f.settle()
	}
}

// dial connects to the server, or returns nil if there is no more need or no way. In a partition it waits for the
// heal, but not for a client that has given up: else all their attempts would fall upon the server at once.
func (l *link) dial() net.Conn {
	for {
		n, changed := l.proxy.network.get()
		if n.reachable() {
			break
		}
		select {
		case <-changed:
		case <-l.left:
			return nil
		case <-l.ctx.Done():
			return nil
		}
	}
	var d net.Dialer
	server, err := d.DialContext(l.ctx, l.proxy.serverNetwork, l.proxy.serverAddress)
	if err != nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ctx.Err() != nil { // reset has not seen this connection
		abort(server)
		return nil
	}
	l.server = server
	return server
}

// reset ends both connections at once. What is in the queues is lost.
func (l *link) reset() {
	l.cancel()
	abort(l.client)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.server != nil {
		abort(l.server)
	}
}

// abort closes without a goodbye: the peer of a TCP connection gets an RST.
func abort(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = c.Close()
}

// pumpUp brings the client's bytes to the server. When the client has hung up, only the writing half is closed: the
// server still runs what it was sent, and its reply is still worth seeing.
func (l *link) pumpUp(server net.Conn) {
	if err := l.up.pump(server); err != nil {
		l.proxy.spent(err)
		l.reset()
		return
	}
	_ = server.(interface{ CloseWrite() error }).CloseWrite()
}

// pumpDown brings the server's bytes to the client.
func (l *link) pumpDown() {
	if err := l.down.pump(l.client); err != nil {
		l.proxy.spent(err)
		l.reset()
		return
	}
	_ = l.client.Close()
}
