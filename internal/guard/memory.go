package guard

import (
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"time"
	"unsafe"
)

// memory is what the node and its guard share. Every word has one writer; what belongs together stands in one word, or
// is written so that the other reads it in the opposite order.
type memory struct {
	bytes []byte
	*header
	seats []seatMemory
}

// header begins the memory.
type header struct {
	magic int64

	// Written by the node.
	sent  atomic.Int64 // when the last good beat was sent, by boottime.Now
	phase atomic.Int64
	used  atomic.Int64 // seats from here on were never taken
	size  int64        // of the orders
	count int64        // of seats

	// Written by the guard.
	looked atomic.Int64 // when it last looked, by boottime.Now
	lapsed atomic.Int64 // 1: it took the lease for lapsed; for good
	noted  atomic.Int64 // 1: after the session was lost, it has seen who is there
	swept  atomic.Int64 // 1: nothing of the session's commands lives
}

// seatMemory is one seat, 64 bytes.
type seatMemory struct {
	launch atomic.Int64 // the id of the run that is launched; 0: nobody sits here
	pgid   atomic.Int64 // 0: not forked, or nobody is left in the group
	inside atomic.Int64 // what the node itself may do that only its end would stop
	before atomic.Int64 // when the fork began, by boottime.Now
	after  atomic.Int64 // when it had ended

	signalled atomic.Int64 // written by the guard: the launch whose group it has signalled while the leader lived

	_ [2]int64
}

// What a node does inside a seat.
const (
	nothing = iota
	forking // it may be
	working // it executes a handler
)

// Phases, in their order.
const (
	inForce  = iota // the session is
	stopping        // it is still, and the node, which stops, kills its commands
	losing          // the session is lost, and the node kills its commands
	emptied         // the node's own part is done: no seat will be taken any more, what is left is the guard's
	over            // there is nothing left to guard
)

const (
	layout    = 0x67756172642d3032 // changes with the layout; both ends are one program
	ordersAt  = 4096
	seatsAt   = ordersAt + maxOrders
	maxOrders = 8192
	maxDSN    = 8192 // fits into the buffer of a socket: sending it does not wait
	seatSize  = int(unsafe.Sizeof(seatMemory{}))
)

// orders is what a guard is told once. They hold no secret: a guard that has just been started shows its memory to
// processes of its own user, see dsn.
type orders struct {
	PID     int // of the node
	Began   int64
	Node    string
	Session string
	Marker  string // what the environment of a command has, before the run's id
	Cgroups string // what the folders of the session's cgroups begin with; "": there are none
	JSON    bool   // how it logs

	Expiry, Kill, Grace, End time.Duration
}

func sizeFor(seats int) int { return seatsAt + seats*seatSize }

// overlay looks at memory.
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

// open looks at memory that a node has prepared, and reads its orders.
func open(b []byte) (*memory, *orders, error) {
	if len(b) < sizeFor(1) {
		return nil, nil, fmt.Errorf("%d bytes of shared memory are too few", len(b))
	}
	h := (*header)(unsafe.Pointer(&b[0]))
	if h.magic != layout || h.count < 1 || h.count > int64(len(b)-seatsAt)/int64(seatSize) || h.size < 1 || h.size > maxOrders {
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

// taken is what a seat shows.
type taken struct {
	launch, pgid  int64
	inside        int64
	before, after time.Duration
	seat          *seatMemory
}

// read lists the seats that are taken.
func (m *memory) read() []taken {
	var out []taken
	for i := range m.seats[:min(int(m.used.Load()), len(m.seats))] {
		s := &m.seats[i]
		t := taken{launch: s.launch.Load(), seat: s}
		if t.launch == 0 {
			continue
		}
		t.pgid, t.inside = s.pgid.Load(), s.inside.Load()
		t.before, t.after = time.Duration(s.before.Load()), time.Duration(s.after.Load())
		if s.launch.Load() == t.launch { // else it was left meanwhile, and perhaps taken by another
			out = append(out, t)
		}
	}
	return out
}
