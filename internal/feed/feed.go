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
	look     = 500 * time.Millisecond // between looks at the database
	linger   = 30 * time.Second       // how long the reader goes on when the last listener has gone
	lookMost = 10 * time.Second       // bounds one look

	ringEvents = 4096
	ringBytes  = 8 << 20

	// overlap is how much of what came before an event is told once more to a listener that heard of it from another
	// node: their readers do not look at the same time.
	overlap = 5 * time.Second
)

// Feed is the change feed of one node. It is safe for concurrent use.
type Feed struct {
	db     *read.DB
	clock  func() job.Micros
	encode func(*Event) []byte
	log    *slog.Logger
	linger time.Duration

	mu        sync.Mutex
	listeners int
	closed    bool
	stop      context.CancelFunc // of the reader, nil: there is none
	done      chan struct{}      // closed when it has ended
	anchored  chan struct{}      // closed when it knows where it begins
	ring      ring
}

// New makes a feed over the rows of a cluster. clock is MySQL's; encode makes the text of an event, once for all
// listeners.
func New(db *read.DB, clock func() job.Micros, encode func(*Event) []byte, log *slog.Logger) *Feed {
	return &Feed{db: db, clock: clock, encode: encode, log: log, linger: linger}
}

// ring holds the latest events.
type ring struct {
	epoch  string // names this life of the ring
	events []kept
	first  int64 // number of the first of them
	bytes  int
	byID   map[string]int64
	began  time.Time     // since when it has all
	news   chan struct{} // closed when there is more
}

type kept struct {
	Event
	came time.Time
}

func newRing() ring {
	var b [4]byte
	_, _ = rand.Read(b[:]) // never fails
	return ring{epoch: hex.EncodeToString(b[:]), byID: map[string]int64{}, news: make(chan struct{})}
}

func (r *ring) next() int64 { return r.first + int64(len(r.events)) }

func (r *ring) add(e Event, now time.Time) {
	if e.ID != "" {
		r.byID[e.ID] = r.next()
	}
	r.events = append(r.events, kept{e, now})
	r.bytes += e.size()
	for len(r.events) > ringEvents || r.bytes > ringBytes && len(r.events) > 1 {
		old := &r.events[0]
		if r.byID[old.ID] == r.first {
			delete(r.byID, old.ID)
		}
		r.bytes -= old.size()
		*old = kept{}
		r.events = r.events[1:]
		r.first++
	}
}

// Listener is somebody's place in the feed. It is used by one goroutine.
type Listener struct {
	f     *Feed
	place int64
	leave func()
}

// Listen makes a listener. What changes from now on is told to it; with the id that a message had before, also what
// came behind that, if resumed.
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
	if at, ok := f.ring.behind(after); ok {
		l.place, resumed = at, true
	}
	return l, resumed, nil
}

// behind finds where to go on after a message.
func (r *ring) behind(after string) (int64, bool) {
	id, place, _ := strings.Cut(after, ".")
	epoch, number, _ := strings.Cut(place, "-")
	if n, err := strconv.ParseInt(number, 10, 64); err == nil && epoch == r.epoch {
		return n + 1, n+1 >= r.first && n < r.next()
	}
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
	if n == r.first && r.first > 0 { // what came just before may be forgotten
		return 0, false
	}
	return n, true
}

// Told is an event, and the id of its message, by which it is resumed.
type Told struct {
	Event
	Place string
}

// Next returns what came since the call before, at most so much, and what is closed when there is more. If the ring has
// gone on without the listener, missed is how many events it cannot be told any more.
func (l *Listener) Next(most int) (events []Told, missed int64, news <-chan struct{}) {
	l.f.mu.Lock()
	defer l.f.mu.Unlock()
	r := &l.f.ring
	if l.place < r.first {
		missed = r.first - l.place
		l.place = r.next() // what is still there is of no use to one who loads everything anew
		return nil, missed, r.news
	}
	for ; l.place < r.next() && len(events) < most; l.place++ {
		events = append(events, Told{r.events[l.place-r.first].Event, fmt.Sprintf("%s.%s-%d", r.events[l.place-r.first].ID, r.epoch, l.place)})
	}
	return events, 0, r.news
}

// Close takes the listener out.
func (l *Listener) Close() { l.leave() }

// publish makes events known to all listeners.
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

// Close ends the reader, if there is one, and keeps another from beginning.
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

// Listeners is how many there are, and Reading whether the database is read for them.
func (f *Feed) Listeners() (n int, reading bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.listeners, f.stop != nil
}

// retire ends the reader's affairs, unless somebody has come meanwhile.
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

// run reads until nobody has listened for a while, or ctx ends.
func (f *Feed) run(ctx context.Context, done, anchored chan struct{}) {
	defer close(done)
	r := newReader(f.db, f.clock)
	alone := time.Time{} // since when nobody listens
	begun, failures := false, 0
	for {
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
				f.log.Warn("what changes cannot be read for those who listen", "error", err)
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

// reload tells listeners that something is not told.
func reload(at job.Micros, reason string) Event {
	return Event{Kind: KindReload, Action: Missed, At: at, Open: true, Reason: reason}
}
