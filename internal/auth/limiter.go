package auth

import (
	"net/netip"
	"sync"
	"time"
)

// Limiter bounds events by key: on average one per Every, and at most Burst at once. It is safe for
// concurrent use.
type Limiter struct {
	Every time.Duration
	Burst int

	mu   sync.Mutex
	free map[string]time.Time // when each key will have its full burst again
}

// Strangers bounds the work for unknown callers. Each bounds the callers of one address. Rest is a
// common reserve for addresses that have used up their part, because a good caller may share its
// address with a bad one.
type Strangers struct{ Each, Rest Limiter }

// Take takes one look-up, or returns the time to wait. The caller calls giveBack if the secret
// turns out to be good.
func (s *Strangers) Take(address string, now time.Time) (giveBack func(), wait time.Duration, ok bool) {
	if wait, ok = s.Each.Take(address, now, 0); ok {
		return func() { s.Each.Give(address) }, 0, true
	}
	if _, ok = s.Rest.Take("", now, 0); ok {
		return func() { s.Rest.Give("") }, 0, true
	}
	return nil, wait, false
}

// maxKeys bounds the memory that a flood of keys takes. At this number, idle keys are forgotten.
// If there are still too many, all keys are forgotten. A forgotten key has a full burst, so no
// caller is kept out.
const maxKeys = 8192

// Take takes one event if the wait for it is not longer than most. It returns the time for which
// the caller must wait.
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

// Give gives back an event that was taken.
func (l *Limiter) Give(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if at, known := l.free[key]; known {
		l.free[key] = at.Add(-l.Every)
	}
}

// Wait returns the wait that Take would return now. It takes no event.
func (l *Limiter) Wait(key string, now time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.wait(key, now)
}

func (l *Limiter) wait(key string, now time.Time) time.Duration {
	ahead := later(l.free[key], now).Sub(now) + l.Every // how far ahead of now the key is if one more event is taken
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

// AddressKey returns the key of an address in limiters. For IPv6 it is the /64 network, because the
// owner of one address usually has the whole network.
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
