package feed

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"time"

	"go-crontab/job"
	"go-crontab/sql/read"
)

const (
	look     = 500 * time.Millisecond // pause between two looks at the database
	linger   = 30 * time.Second       // how soon the reader stops after the last listener has gone
	lookMost = 10 * time.Second       // timeout of a look

	ringEvents = 4096
	ringBytes  = 8 << 20

	// overlap is for a listener that comes from another node: it continues this long before its
	// last event. The readers of two nodes do not look at the same moment, so without overlap it
	// could miss events.
	overlap = 5 * time.Second
)

// Feed is a node's change feed. It is safe for concurrent use.
type Feed struct {
	db     read.Watch
	clock  func() job.Micros
	encode func(*Event) []byte
	log    *slog.Logger
	linger time.Duration

	mu        sync.Mutex
	listeners int
	closed    bool
	stop      context.CancelFunc // stops the reader; nil: no reader
	done      chan struct{}      // closed when the reader has ended
	anchored  chan struct{}      // closed when the reader knows its starting point
	ring      ring
}

// New returns a feed of the changes in a cluster. clock is MySQL's clock. encode returns the text
// of an event. It is called once for each event, for all listeners.
func New(db *read.DB, clock func() job.Micros, encode func(*Event) []byte, log *slog.Logger) *Feed {
	return &Feed{db: read.Watch{DB: db}, clock: clock, encode: encode, log: log, linger: linger}
}

// ring holds the latest events.
type ring struct {
	epoch  string // identifies this ring
	events []entry
	first  int64            // number of the first event
	bytes  int              // estimated memory of the events
	byID   map[string]int64 // numbers of events
	began  time.Time        // all events since then were added, but the oldest may have been dropped
	news   chan struct{}    // closed when events are added
}

// entry is an event in the ring, with the time at which it came.
type entry struct {
	Event
	came time.Time
}

func newRing() ring {
	var b [4]byte
	_, _ = rand.Read(b[:]) // never fails
	return ring{epoch: hex.EncodeToString(b[:]), byID: map[string]int64{}, news: make(chan struct{})}
}

// next returns the number of the next event.
func (r *ring) next() int64 { return r.first + int64(len(r.events)) }

// add appends an event, and drops the oldest ones if the ring is full.
func (r *ring) add(e Event, now time.Time) {
	if e.ID != "" {
		r.byID[e.ID] = r.next()
	}
	r.events = append(r.events, entry{e, now})
	r.bytes += e.size()

	for len(r.events) > ringEvents || r.bytes > ringBytes && len(r.events) > 1 {
		old := &r.events[0]
		if r.byID[old.ID] == r.first {
			delete(r.byID, old.ID)
		}
		r.bytes -= old.size()
		*old = entry{}
		r.events = r.events[1:]
		r.first++
	}
}

// Listener is a subscriber's place in the feed. One goroutine uses it.
type Listener struct {
	f     *Feed
	place int64
	leave func()
}

// Listen adds a listener, which gets all events from now on. after may be the id of an earlier
// message. If the place of that message is still known, the listener also gets the events after
// it, and resumed is true.
func (f *Feed) Listen(ctx context.Context, after string) (l *Listener, resumed bool, err error) {
	f.mu.Lock()
	if f.closed {
		f.mu.Unlock()
		return nil, false, context.Canceled
	}

	f.listeners++
	if f.stop == nil {
		reading, stop := context.WithCancel(context.Background())
		f.stop, f.done, f.anchored, f.ring = stop, make(chan struct{}), make(chan struct{}), newRing()
		go f.run(reading, f.done, f.anchored)
	}

	anchored := f.anchored
	f.mu.Unlock()

	l = &Listener{f: f, leave: sync.OnceFunc(func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.listeners--
	})}

	select {
	case <-anchored:
	case <-ctx.Done():
		l.leave()
		return nil, false, fmt.Errorf("begin to watch: %w", context.Cause(ctx))
	}

	f.mu.Lock()
	defer f.mu.Unlock()

	l.place = f.ring.next()
	if at, ok := f.ring.resumeAt(after); ok {
		l.place, resumed = at, true
	}
	return l, resumed, nil
}

// resumeAt returns the number of the event after a message. This node or another node sent the
// message.
func (r *ring) resumeAt(after string) (int64, bool) {
	id, place, _ := strings.Cut(after, ".")
	epoch, number, _ := strings.Cut(place, "-")
	// A message of this ring.
	if n, err := strconv.ParseInt(number, 10, 64); err == nil && epoch == r.epoch {
		return n + 1, n+1 >= r.first && n < r.next()
	}

	// A message of another node: start a bit before its event.
	n, ok := r.byID[id]
	if !ok || id == "" {
		return 0, false
	}
	since := r.events[n-r.first].came.Add(-overlap)
	if since.Before(r.began) {
		return 0, false
	}

	for n > r.first && !r.events[n-r.first-1].came.Before(since) {
		n--
	}
	if n == r.first && r.first > 0 { // the events just before may have been dropped
		return 0, false
	}
	return n, true
}

// Told is an event with the id of its message. Listen resumes after this id.
type Told struct {
	Event
	Place string
}

// Next returns up to most events since the last call. news is closed when there are more events.
// missed is the number of events that the ring has dropped before the listener got them.
func (l *Listener) Next(most int) (events []Told, missed int64, news <-chan struct{}) {
	l.f.mu.Lock()
	defer l.f.mu.Unlock()
	r := &l.f.ring

	if l.place < r.first {
		missed = r.first - l.place
		l.place = r.next() // the listener reloads everything, so it does not need the remaining events
		return nil, missed, r.news
	}

	for ; l.place < r.next() && len(events) < most; l.place++ {
		e := r.events[l.place-r.first].Event
		events = append(events, Told{e, fmt.Sprintf("%s.%s-%d", e.ID, r.epoch, l.place)})
	}
	return events, 0, r.news
}

// Close removes the listener.
func (l *Listener) Close() { l.leave() }

// publish adds events to the ring and wakes the listeners.
func (f *Feed) publish(events []Event, now time.Time) {
	if len(events) == 0 {
		return
	}
	for i := range events {
		if e := &events[i]; e.Kind != KindRuns {
			e.Data = f.encode(e)
			e.Run, e.Backfill = nil, nil
		}
	}

	f.mu.Lock()
	defer f.mu.Unlock()
	for _, e := range events {
		f.ring.add(e, now)
	}
	close(f.ring.news)
	f.ring.news = make(chan struct{})
}

// Close stops the reader and prevents further ones.
func (f *Feed) Close() {
	f.mu.Lock()
	f.closed = true
	stop, done := f.stop, f.done
	f.mu.Unlock()

	if stop != nil {
		stop()
		<-done
	}
}

// Listeners returns the number of listeners, and whether a reader runs.
func (f *Feed) Listeners() (n int, reading bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.listeners, f.stop != nil
}

// retire forgets the reader, unless there are listeners. With force it forgets the reader in any
// case.
func (f *Feed) retire(force bool) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.listeners > 0 && !force {
		return false
	}

	f.stop()
	f.stop, f.ring = nil, ring{}
	return true
}

// run reads until there has been no listener for a while, or ctx ends.
func (f *Feed) run(ctx context.Context, done, anchored chan struct{}) {
	defer close(done)
	r := newReader(f.db, f.clock)
	alone := time.Time{} // since when there has been no listener; zero: there are some
	begun, failures := false, 0

	for {

		// Find the starting point, or read the changes since the last look.
		now := time.Now()
		bounded, cancel := context.WithTimeout(ctx, lookMost)
		var err error
		if begun {
			var events []Event
			events, err = r.look(bounded, now)
			f.publish(events, now)
		} else if err = r.anchor(bounded, now); err == nil {
			begun = true
			f.mu.Lock()
			f.ring.began = now
			f.mu.Unlock()
			close(anchored)
		}
		cancel()

		switch {
		case err == nil:
			failures = 0
		case ctx.Err() == nil:
			if failures++; failures == 3 {
				f.log.Warn("cannot read changes for event streams, trying again", "error", err)
			}
		}

		wait := look
		if r.behind {
			wait = 0
		}
		select {
		case <-ctx.Done():
			f.retire(true)
			return
		case <-time.After(wait):
		}

		n, _ := f.Listeners()
		switch {
		case n > 0:
			alone = time.Time{}
		case alone.IsZero():
			alone = now
		case now.Sub(alone) >= f.linger && f.retire(false):
			return
		}
	}
}

// reload returns an event that makes listeners reload everything.
func reload(at job.Micros, reason string) Event {
	return Event{Kind: KindReload, Action: Missed, At: at, Open: true, Reason: reason}
}
