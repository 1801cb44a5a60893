package guard

import (
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"time"
	"unsafe"
)

// memory is shared by the node and its guard. Each word has one writer. If facts belong together,
// they share one word, or the order of access protects them: the reader loads them in one order,
// and the writer stores them in the reverse order.
type memory struct {
	bytes []byte
	*header
	seats []seatMemory
}

// header is the start of the memory.
type header struct {
	magic int64

	// Written by the node.
	sent  atomic.Int64 // when the last good beat was sent, by boottime.Now
	phase atomic.Int64
	used  atomic.Int64 // number of seats up to the last seat that was ever taken
	size  int64        // bytes of orders
	count int64        // number of seats

	// Written by the guard.
	looked atomic.Int64 // the last look, by boottime.Now
	lapsed atomic.Int64 // 1: the guard has seen the lease lapse; never reset
	noted  atomic.Int64 // 1: since the session was lost, the guard has noted the processes of the commands
	swept  atomic.Int64 // 1: none of the session's processes lives
}

// seatMemory is a seat of 64 bytes.
type seatMemory struct {
	run    atomic.Int64 // id of the attempt's run; 0: the seat is free
	pgid   atomic.Int64 // 0: not forked yet, or the group is empty
	inside atomic.Int64 // what the node itself is doing in the seat; only the node's end would stop it
	before atomic.Int64 // start of the fork, by boottime.Now
	after  atomic.Int64 // end of the fork

	// Written by the guard: the run whose process group it has signalled while the leader lived.
	signalled atomic.Int64

	_ [2]int64
}

// The activities of a node inside a seat.
const (
	nothing = iota
	forking // it may be forking
	working // it executes a handler
)

// The phases of a session, in order.
const (
	inForce  = iota // the session is in force
	stopping        // it is still in force, but the node stops and kills its commands
	losing          // the session is lost, and the node kills its commands
	emptied         // the node has done its part: it takes no more seats, and the guard kills the rest
	over            // nothing is left to guard
)

const (
	layout    = 0x67756172642d3032 // changes with the layout; only a check, because both sides are one program
	ordersAt  = 4096
	seatsAt   = ordersAt + maxOrders
	maxOrders = 8192
	maxDSN    = 8192 // fits into a socket's buffer, so sending does not wait
	seatSize  = int(unsafe.Sizeof(seatMemory{}))
)

// orders tell a guard what to guard. They are written once. They hold no secret, because other
// processes of its user can read the memory of a guard that has just started, see dsn.
type orders struct {
	PID     int // of the node
	Began   int64
	Node    string
	Session string
	Marker  string // start of a variable in the environment of commands, up to the run's id
	Cgroups string // common start of the paths of the session's cgroups; "": none
	JSON    bool   // format of the log

	Expiry, Kill, Grace, End time.Duration
}

func sizeFor(seats int) int { return seatsAt + seats*seatSize }

// overlay interprets b as memory.
func overlay(b []byte, seats int) *memory {
	return &memory{
		bytes: b, header: (*header)(unsafe.Pointer(&b[0])),
		seats: unsafe.Slice((*seatMemory)(unsafe.Pointer(&b[seatsAt])), seats),
	}
}

// format prepares new memory.
func format(b []byte, seats int) *memory {
	m := overlay(b, seats)
	m.magic, m.count = layout, int64(seats)
	return m
}

// open checks memory that a node has prepared, and reads its orders.
func open(b []byte) (*memory, *orders, error) {
	if len(b) < sizeFor(1) {
		return nil, nil, fmt.Errorf("%d bytes of shared memory are too few", len(b))
	}

	h := (*header)(unsafe.Pointer(&b[0]))
	if h.magic != layout || h.count < 1 || h.count > int64(len(b)-seatsAt)/int64(seatSize) || h.size < 1 ||
		h.size > maxOrders {
		return nil, nil, errors.New("the shared memory is not that of a node")
	}

	o := new(orders)
	if err := json.Unmarshal(b[ordersAt:ordersAt+h.size], o); err != nil {
		return nil, nil, fmt.Errorf("orders: %w", err)
	}
	if o.PID <= 0 || o.Session == "" || o.Marker == "" || o.Expiry <= 0 {
		return nil, nil, errors.New("orders: no node, no session or no expiry")
	}

	return overlay(b, int(h.count)), o, nil
}

// command writes the orders, before a guard is started.
func (m *memory) command(o *orders) error {
	b, err := json.Marshal(o)
	if err != nil {
		return fmt.Errorf("orders: %w", err)
	}
	if len(b) > maxOrders {
		return fmt.Errorf("orders: the names have %d bytes, more than %d", len(b), maxOrders)
	}

	copy(m.bytes[ordersAt:], b)
	m.size = int64(len(b))
	return nil
}

// taken is a copy of a taken seat.
type taken struct {
	run, pgid     int64
	inside        int64
	before, after time.Duration
	seat          *seatMemory
}

// read copies the taken seats.
func (m *memory) read() []taken {
	var out []taken
	for i := range m.seats[:min(int(m.used.Load()), len(m.seats))] {
		s := &m.seats[i]
		t := taken{run: s.run.Load(), seat: s}
		if t.run == 0 {
			continue
		}

		t.pgid, t.inside = s.pgid.Load(), s.inside.Load()
		t.before, t.after = time.Duration(s.before.Load()), time.Duration(s.after.Load())
		if s.run.Load() == t.run { // if not, the attempt has left the seat, and another attempt may have it
			out = append(out, t)
		}
	}

	return out
}
