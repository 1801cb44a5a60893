package faultproxy

import "time"

// Direction says which way bytes travel.
type Direction uint8

// The directions; a fault may be given both.
const (
	ToServer Direction = 1 << iota
	ToClient
	BothWays = ToServer | ToClient
)

// network is the state of the wires, the same for every connection.
type network struct {
	refuse   bool
	toServer wire
	toClient wire
}

// wire is the state of one direction.
type wire struct {
	delay     time.Duration
	blackhole bool
	rate      int // bytes per second; 0: as fast as it goes
	quota     *quota
}

// A quota cuts a connection after so many bytes. Its address tells one call of ResetAfter from the next, so that
// each connection starts to count anew.
type quota struct{ bytes int64 }

func (n network) wire(dir Direction) wire {
	if dir == ToServer {
		return n.toServer
	}
	return n.toClient
}

// reachable tells whether a new connection would get through: its handshake needs both directions.
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

// Delay lets every byte arrive d later, as a long line does: bytes sent together still arrive together.
func (p *Proxy) Delay(dir Direction, d time.Duration) {
	p.change(dir, func(w *wire) { w.delay = d })
}

// Slow lets so many bytes per second through on each connection. 0 lifts it.
func (p *Proxy) Slow(dir Direction, bytesPerSecond int) {
	p.change(dir, func(w *wire) { w.rate = max(0, bytesPerSecond) })
}

// Blackhole takes everything and passes nothing on, not even that a side has hung up; new connections are accepted
// and left without a word. Nothing is lost: on Heal what was swallowed arrives, in order, as TCP would send it
// again. Follow with CutAll for a peer that never comes back.
func (p *Proxy) Blackhole(dir Direction) {
	p.change(dir, func(w *wire) { w.blackhole = true })
}

// ResetAfter cuts each connection, present and future, when n more bytes have passed on it. 0 cuts at the next
// byte. With BothWays each direction counts for itself.
func (p *Proxy) ResetAfter(dir Direction, n int64) {
	q := &quota{n}
	p.change(dir, func(w *wire) { w.quota = q })
}

// Refuse resets every new connection. Those that stand stay.
func (p *Proxy) Refuse() {
	p.network.update(func(n *network) { n.refuse = true })
}

// CutAll resets every connection that stands now, on both sides, with all that was under way on it.
func (p *Proxy) CutAll() {
	for _, l := range p.standing() {
		l.reset()
	}
}

// Heal ends every fault of the network. Rules stay; what they hold back stays held.
func (p *Proxy) Heal() {
	p.network.update(func(n *network) { *n = network{} })
}
