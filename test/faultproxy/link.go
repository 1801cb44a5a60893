package faultproxy

import (
	"context"
	"net"
	"sync"
)

// A link is a client's connection to the proxy together with the proxy's connection to the server.
type link struct {
	proxy    *Proxy
	client   net.Conn
	ctx      context.Context // ends when the link is reset
	cancel   context.CancelFunc
	up, down *pipe
	left     chan struct{} // closed when the client has hung up
	dialogue dialogue      // used by readClient only
	firings  []*firing     // used by readClient only, until it has ended

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

// dial connects to the server. It returns nil if it fails or if the link has ended. In a partition
// it waits for the heal, but not for a client that has given up: otherwise all past attempts would
// reach the server at once.
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

	if l.ctx.Err() != nil { // reset ran before l.server was set
		abort(server)
		return nil
	}

	l.server = server
	return server
}

// reset ends both connections at once. Bytes in the queues are lost.
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

// pumpUp writes the client's bytes to the server. When the client has hung up, only the writing
// half is closed: the server still runs the commands it got, and its reply is still worth seeing.
func (l *link) pumpUp(server net.Conn) {
	if err := l.up.pump(server); err != nil {
		l.proxy.countReset(err)
		l.reset()
		return
	}
	_ = server.(interface{ CloseWrite() error }).CloseWrite()
}

// pumpDown writes the server's bytes to the client.
func (l *link) pumpDown() {
	if err := l.down.pump(l.client); err != nil {
		l.proxy.countReset(err)
		l.reset()
		return
	}
	_ = l.client.Close()
}
