package faultproxy

import "time"

// Direction says which way bytes travel.
type Direction uint8

// The directions. A fault may apply to both.
const (
	ToServer Direction = 1 << iota
	ToClient
	BothWays = ToServer | ToClient
)

// network is the state of the wires, shared by all connections.
type network struct {
	refuse   bool
	toServer wire
	toClient wire
}

// wire is the state of a direction.
type wire struct {
	delay     time.Duration
	blackhole bool
	rate      int // bytes per second; 0: unlimited
	quota     *quota
}

// A quota cuts a connection after this number of bytes. The pointer identifies one call of
// ResetAfter, so each connection restarts its count at the next call.
type quota struct{ bytes int64 }

func (n network) wire(dir Direction) wire {
	if dir == ToServer {
		return n.toServer
	}
	return n.toClient
}

// reachable reports whether a new connection would get through. Its handshake needs both
// directions.
func (n network) reachable() bool { return !n.toServer.blackhole && !n.toClient.blackhole }

// change applies f to the wires of dir.
func (p *Proxy) change(dir Direction, f func(*wire)) {
	p.network.update(func(n *network) {
		if dir&ToServer != 0 {
			f(&n.toServer)
		}
		if dir&ToClient != 0 {
			f(&n.toClient)
		}
	})
}

// Delay makes every byte arrive d later, as on a long line: bytes sent together still arrive
// together.
func (p *Proxy) Delay(dir Direction, d time.Duration) {
	p.change(dir, func(w *wire) { w.delay = d })
}

// Slow limits each connection to this many bytes per second. 0 removes the limit.
func (p *Proxy) Slow(dir Direction, bytesPerSecond int) {
	p.change(dir, func(w *wire) { w.rate = max(0, bytesPerSecond) })
}

// Blackhole accepts bytes and passes nothing on, not even that a side has hung up. New connections
// are accepted and get no answer. Nothing is lost: after Heal all bytes arrive in order, as TCP
// would send them again. Call CutAll afterwards for a peer that never comes back.
func (p *Proxy) Blackhole(dir Direction) {
	p.change(dir, func(w *wire) { w.blackhole = true })
}

// ResetAfter cuts each connection, present and future, after n more bytes. 0 cuts at the next byte.
// With BothWays each direction counts separately.
func (p *Proxy) ResetAfter(dir Direction, n int64) {
	q := &quota{n}
	p.change(dir, func(w *wire) { w.quota = q })
}

// Refuse resets every new connection. Existing ones continue.
func (p *Proxy) Refuse() {
	p.network.update(func(n *network) { n.refuse = true })
}

// CutAll resets every existing connection on both sides. Bytes in flight are lost.
func (p *Proxy) CutAll() {
	for _, l := range p.openLinks() {
		l.reset()
	}
}

// Heal ends every fault of the network. Rules remain, and so does anything they hold.
func (p *Proxy) Heal() {
	p.network.update(func(n *network) { *n = network{} })
}
