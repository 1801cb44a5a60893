package api

import (
	"net"
	"sync"
)

// limited accepts no more connections than there are slots; further ones wait in the kernel's queue.
type limited struct {
	net.Listener
	slots  chan struct{}
	closed chan struct{}
	close  func() error
}

func limitConnections(l net.Listener, most int) net.Listener {
	n := &limited{Listener: l, slots: make(chan struct{}, most), closed: make(chan struct{})}
	n.close = sync.OnceValue(func() error { close(n.closed); return l.Close() })
	return n
}

func (l *limited) Accept() (net.Conn, error) {
	select {
	case l.slots <- struct{}{}:
	case <-l.closed:
		return nil, net.ErrClosed
	}
	c, err := l.Listener.Accept()
	if err != nil {
		<-l.slots
		return nil, err
	}
	return &slotted{Conn: c, free: sync.OnceFunc(func() { <-l.slots })}, nil
}

func (l *limited) Close() error { return l.close() }

// slotted gives its slot back when it is closed.
type slotted struct {
	net.Conn
	free func()
}

func (c *slotted) Close() error {
	defer c.free()
	return c.Conn.Close()
}
