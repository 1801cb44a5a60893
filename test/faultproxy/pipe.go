package faultproxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

// errCut means that a fault requires both connections to be reset.
var errCut = errors.New("connection cut by a fault")

// errSpent is the errCut of ResetAfter.
var errSpent = fmt.Errorf("%w: its bytes are spent", errCut)

// queueLength bounds a pipe that takes in bytes and lets none out, like a full socket buffer.
const queueLength = 4096

// A chunk is the result of a single read.
type chunk struct {
	data []byte
	at   time.Time // when it came in
	held *firing   // wait for this first; usually nil
	last bool      // the sender has hung up
}

// A pipe carries the bytes of a connection in one direction.
type pipe struct {
	ctx     context.Context // ends with the connection
	dir     Direction
	network *watched[network]
	queue   chan chunk

	quota *quota // the quota that left is counted from
	left  int64
}

func newPipe(ctx context.Context, dir Direction, n *watched[network]) *pipe {
	return &pipe{ctx: ctx, dir: dir, network: n, queue: make(chan chunk, queueLength)}
}

// send queues a chunk, or drops it when the connection is over.
func (p *pipe) send(c chunk) {
	c.at = time.Now()
	select {
	case p.queue <- c:
	case <-p.ctx.Done():
	}
}

// pump writes to dst until the end of the stream has come through. After a write to dst has failed,
// it discards the rest: the sender learns this from its own connection, not from a full queue. An
// error means that both connections must be reset, or have been.
func (p *pipe) pump(dst io.Writer) error {
	dead := false
	for {
		var c chunk
		select {
		case c = <-p.queue:
		case <-p.ctx.Done():
			return context.Cause(p.ctx)
		}

		if c.held != nil {
			if err := c.held.wait(p.ctx); err != nil {
				return err
			}
		}

		if c.last {
			_, err := p.passable(c.at)
			return err
		}

		for len(c.data) > 0 && !dead {
			n, err := p.writeSome(dst, c)
			if errors.Is(err, errCut) {
				return err
			}
			if p.ctx.Err() != nil {
				return errCut
			}

			dead = err != nil
			c.data = c.data[n:]
		}

		if c.held != nil && c.held.kind == hold {
			c.held.settle()
		}
	}
}

// writeSome writes as much of c as the wire takes at once.
func (p *pipe) writeSome(dst io.Writer, c chunk) (int, error) {
	w, err := p.passable(c.at)
	if err != nil {
		return 0, err
	}
	n := len(c.data)
	if w.rate > 0 {
		n = min(n, 1+w.rate/50) // in steps of about 20 ms
	}

	if w.quota != p.quota {
		p.quota = w.quota
		if w.quota != nil {
			p.left = w.quota.bytes
		}
	}

	if p.quota != nil {
		n = int(min(int64(n), p.left))
	}
	if n, err = dst.Write(c.data[:n]); err != nil {
		return n, err
	}
	if p.left -= int64(n); p.quota != nil && p.left <= 0 {
		return n, errSpent
	}

	if w.rate > 0 {
		err = p.sleep(time.Duration(n) * time.Second / time.Duration(w.rate))
	}

	return n, err
}

// passable blocks until the wire lets through bytes that came in at the given instant, and returns
// the state of the wire.
func (p *pipe) passable(at time.Time) (wire, error) {
	for {
		n, changed := p.network.get()
		w := n.wire(p.dir)
		early := time.Until(at.Add(w.delay))
		if early <= 0 && !w.blackhole {
			return w, nil
		}
		var arrives <-chan time.Time
		if !w.blackhole {
			arrives = time.After(early)
		}

		select {
		case <-arrives:
		case <-changed:
		case <-p.ctx.Done():
			return w, context.Cause(p.ctx)
		}
	}
}

func (p *pipe) sleep(d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-p.ctx.Done():
		return context.Cause(p.ctx)
	}
}
