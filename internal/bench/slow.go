package bench

import (
	"context"
	"io"
	"net"
	"strings"
	"sync"
	"time"
)

// distance simulates a slow network. It forwards connections to a server, and delays all bytes by
// the same time. It does not limit the bandwidth.
type distance struct {
	l       net.Listener
	network string
	address string
	oneWay  time.Duration
}

// newDistance returns a distance that listens on loopback until ctx ends. to is the address of a
// server, or the path of a unix socket.
func newDistance(ctx context.Context, to string, roundTrip time.Duration) (*distance, error) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}

	d := &distance{l: l, network: "tcp", address: to, oneWay: roundTrip / 2}
	if strings.HasPrefix(to, "/") {
		d.network = "unix"
	}

	context.AfterFunc(ctx, func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go d.forward(ctx, c)
		}
	}()

	return d, nil
}

func (d *distance) addr() string { return d.l.Addr().String() }

func (d *distance) forward(ctx context.Context, near net.Conn) {
	defer near.Close()
	far, err := net.Dial(d.network, d.address)
	if err != nil {
		return
	}
	defer far.Close()

	defer context.AfterFunc(ctx, func() { near.Close(); far.Close() })()

	var both sync.WaitGroup
	both.Go(func() { d.carry(far, near) })
	both.Go(func() { d.carry(near, far) })
	both.Wait()
}

type parcel struct {
	bytes []byte
	at    time.Time // time of arrival
}

// carry copies one direction with the delay. When this direction ends, carry also ends the other.
func (d *distance) carry(to, from net.Conn) {
	road := make(chan parcel, 4096)
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer to.Close()
		for p := range road {
			time.Sleep(time.Until(p.at))
			if _, err := to.Write(p.bytes); err != nil {
				_ = from.Close()
				for range road { // discard pieces until the loop below has ended
				}
				return
			}
		}
	}()

	for {
		piece := make([]byte, 32<<10)
		n, err := from.Read(piece)
		if n > 0 {
			road <- parcel{piece[:n], time.Now().Add(d.oneWay)}
		}
		if err != nil {
			break
		}
	}

	close(road)
	<-done
	_, _ = io.Copy(io.Discard, from)
}
