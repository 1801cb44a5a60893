package execute

import (
	"fmt"
	"net"
	"net/netip"
	"sync/atomic"
	"time"
)

// addressAge is the time after which the list of the machine's addresses is read again.
const addressAge = time.Minute

// machine knows the addresses of the machine's interfaces. A server that listens on all addresses
// is reachable by each of them, so even a public one must not bypass the guard. A router may
// translate another address to one of these. No interface has that address, so nodes do not know
// it.
type machine struct {
	list  func() ([]net.Addr, error) // net.InterfaceAddrs
	known atomic.Pointer[addresses]
}

type addresses struct {
	read time.Time
	set  map[netip.Addr]bool
}

// thisMachine is shared by all guards of the process.
var thisMachine = &machine{list: net.InterfaceAddrs}

// owns reports whether an address is one of the machine's. If the list is too old, owns reads it
// again. Concurrent callers do not wait for each other: each reads the list.
func (m *machine) owns(addr netip.Addr, now time.Time) (bool, error) {
	known := m.known.Load()
	if known == nil || now.Sub(known.read) >= addressAge {
		var err error
		if known, err = m.read(now); err != nil {
			return false, err
		}
	}
	return known.set[addr], nil
}

func (m *machine) read(now time.Time) (*addresses, error) {
	list, err := m.list()
	if err != nil {
		return nil, fmt.Errorf("list the addresses of this machine, which requests may not reach: %w", err)
	}

	known := &addresses{read: now, set: make(map[netip.Addr]bool, len(list))}
	for _, a := range list {
		if prefix, err := netip.ParsePrefix(a.String()); err == nil {
			known.set[prefix.Addr().Unmap().WithZone("")] = true
		}
	}
	m.known.Store(known)
	return known, nil
}
