package auth

import (
	"net/netip"
	"sync"
	"time"
)

// Limiter bounds how often things happen, for each key by itself: on average Every, and at most Burst at once. It is
// safe for concurrent use.
type Limiter struct {
	Every time.Duration
	Burst int

	mu   sync.Mutex
	free map[string]time.Time // when all that was taken will have been given back
}

// Strangers bounds what is done for those of whom nothing is known: for each address by itself, and some more for all
// addresses that have none left, since those who are somebody may share theirs with one who is not.
type Strangers struct{ Each, Rest Limiter }

// Take takes one, or tells how long to wait. giveBack is for who turned out to be no stranger.
func (s *Strangers) Take(address string, now time.Time) (giveBack func(), wait time.Duration, ok bool) {
	if wait, ok = s.Each.Take(address, now, 0); ok {
		return func() { s.Each.Give(address) }, 0, true
	}
	if _, ok = s.Rest.Take("", now, 0); ok {
		return func() { s.Rest.Give("") }, 0, true
	}
	return nil, wait, false
}

// maxKeys bounds what a flood of keys costs. When it is reached the idle ones are forgotten, or else all: that gives
// each a new burst, and keeps nobody out.
const maxKeys = 8192

// Take takes one, unless that had to wait for longer than most. It returns how long to wait before going ahead.
func (l *Limiter) Take(key string, now time.Time, most time.Duration) (wait time.Duration, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	wait = l.wait(key, now)
	if wait > most {
		return wait, false
	}
	if l.free == nil {
		l.free = map[string]time.Time{}
	}
	if _, known := l.free[key]; !known && len(l.free) >= maxKeys {
		l.forget(now)
	}
	l.free[key] = later(l.free[key], now).Add(l.Every)
	return wait, true
}

// Give gives one back that was taken.
func (l *Limiter) Give(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if at, known := l.free[key]; known {
		l.free[key] = at.Add(-l.Every)
	}
}

// Wait tells how long one would have to wait now, and takes none.
func (l *Limiter) Wait(key string, now time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.wait(key, now)
}

func (l *Limiter) wait(key string, now time.Time) time.Duration {
	ahead := later(l.free[key], now).Sub(now) + l.Every // how far the account would be overdrawn
	return max(0, ahead-time.Duration(l.Burst)*l.Every)
}

func (l *Limiter) forget(now time.Time) {
	for key, at := range l.free {
		if !at.After(now) {
			delete(l.free, key)
		}
	}
	if len(l.free) >= maxKeys {
		clear(l.free)
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// AddressKey is what an address counts as: of IPv6 the network, since whoever has one address there has 2^64.
func AddressKey(address string) string {
	a, err := netip.ParseAddr(address)
	if err != nil {
		return address
	}
	a = a.Unmap().WithZone("")
	if a.Is4() {
		return a.String()
	}
	p, _ := a.Prefix(64)
	return p.String()
}
