package guard

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

// TestOrders checks that a guard reads the orders of its node, and refuses memory of another kind.
func TestOrders(t *testing.T) {
	t.Parallel()
	good := func() []byte {
		b := make([]byte, sizeFor(3))
		if err := format(b, 3).command(&orders{PID: 7, Session: "s", Marker: "m=", Expiry: time.Second}); err != nil {
			t.Fatal(err)
		}
		return b
	}

	m, o, err := open(good())
	if err != nil || len(m.seats) != 3 || o.PID != 7 || o.Expiry != time.Second {
		t.Errorf("got %+v, %v", o, err)
	}

	for name, change := range map[string]func(b []byte) []byte{
		"nothing":               func([]byte) []byte { return nil },
		"no seat":               func(b []byte) []byte { return b[:seatsAt] },
		"zeros":                 func(b []byte) []byte { return make([]byte, len(b)) },
		"another layout":        func(b []byte) []byte { overlay(b, 3).magic++; return b },
		"more seats than there": func(b []byte) []byte { overlay(b, 3).count = 4; return b },
		"less than no seat":     func(b []byte) []byte { overlay(b, 3).count = -1; return b },
		"no orders":             func(b []byte) []byte { overlay(b, 3).size = 0; return b },
		"too many orders":       func(b []byte) []byte { overlay(b, 3).size = maxOrders + 1; return b },
		"orders of no sense":    func(b []byte) []byte { b[ordersAt] = 'x'; return b },
		"orders of nobody": func(b []byte) []byte {
			_ = overlay(b, 3).command(&orders{Session: "s", Marker: "m=", Expiry: 1})
			return b
		},
	} {
		if _, _, err := open(change(good())); err == nil {
			t.Errorf("%s: was taken", name)
		}
	}

	if err := format(make([]byte, sizeFor(1)), 1).command(&orders{Node: strings.Repeat("n", maxOrders)}); err == nil {
		t.Error("orders that do not fit were taken")
	}
}

// FuzzMemory checks that a guard does not crash, whatever is in the memory.
func FuzzMemory(f *testing.F) {
	b := make([]byte, sizeFor(2))
	_ = format(b, 2).command(&orders{PID: 7, Session: "s", Marker: "m=", Expiry: time.Second})
	f.Add(b)
	f.Add([]byte("x"))
	f.Fuzz(func(t *testing.T, b []byte) {
		aligned := make([]byte, len(b)) // like mapped memory
		copy(aligned, b)
		m, o, err := open(aligned)
		if err != nil {
			return
		}
		if _, err := json.Marshal(o); err != nil {
			t.Error(err)
		}

		if seats := m.read(); len(seats) > len(m.seats) {
			t.Errorf("%d seats of %d", len(seats), len(m.seats))
		}
	})
}
