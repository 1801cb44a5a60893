package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"go-crontab/api/view"
	"go-crontab/internal/auth"
)

// Streams are long answers of server-sent events. Each stream holds a connection, so their number
// is limited. Each stream checks by itself that its subscriber still has access.
const (
	streamsOfNode   = 64 // less than maxConnections, so that the node can answer other requests
	streamsOfAdmins = 4  // of streamsOfNode, reserved for cluster admins
	streamsOfToken  = 16

	heartbeat        = 15 * time.Second // the longest silence; after it a comment is sent
	accessCheckEvery = 3 * time.Second  // the interval between checks of the subscriber's access
	slowWrite        = 10 * time.Second // a subscriber that takes longer for a message is treated as gone
	streamRead       = 5 * time.Second  // the time limit of database reads for a stream
	retryAfter       = 2 * time.Second  // browsers reconnect after this
)

// Headers of streams.
const (
	lastEventID = "Last-Event-ID"
	accelHeader = "X-Accel-Buffering"
)

// streams holds the open streams of the node. When all seats are taken, a new stream takes its seat
// from the caller with the most streams. So a caller with many streams shuts out nobody.
type streams struct {
	mu     sync.Mutex
	all    int
	by     map[string][]*seat // the streams of each caller, by its limit key, the oldest first
	ending chan struct{}      // closed when all streams must end
	end    func()
	beat   time.Duration // see heartbeat
}

func newStreams() *streams {
	t := &streams{by: map[string][]*seat{}, ending: make(chan struct{}), beat: heartbeat}
	t.end = sync.OnceFunc(func() { close(t.ending) })
	return t
}

// seat is a stream's place on the node.
type seat struct {
	limitKey string
	taken    chan struct{} // closed when another caller takes the place
}

// enter takes a seat for a new stream of a caller.
func (t *streams) enter(p *auth.Principal) (*seat, error) {
	key := limitKey(p)
	most := streamsOfNode
	if !p.May(admin) {
		most -= streamsOfAdmins
	}

	t.mu.Lock()
	defer t.mu.Unlock()

	mine := len(t.by[key])
	if mine >= streamsOfToken {
		return nil, slowDown(heartbeat, "%s already has %d streams on this node. Close one, or ask another node.",
			p.Name, streamsOfToken)
	}

	if t.all >= most && !t.makeRoom(mine) {
		return nil, noStream.problem(
			"This node has reached its maximum of %d streams, and %s has %d of them. Ask another node.", t.all,
			p.Name, mine)
	}

	one := &seat{limitKey: key, taken: make(chan struct{})}
	t.add(one)
	return one, nil
}

// makeRoom ends the oldest stream of the caller with the most streams, and reports whether it ended
// one. mine is the number of streams of the caller who wants a seat. It ends a stream only if
// mine+1 is less than the streams of the other caller.
func (t *streams) makeRoom(mine int) bool {
	var loser []*seat
	for _, seats := range t.by {
		if len(seats) > max(mine+1, len(loser)) {
			loser = seats
		}
	}

	if loser == nil {
		return false
	}

	close(loser[0].taken)
	t.remove(loser[0])
	return true
}

func (t *streams) add(one *seat) {
	t.all++
	t.by[one.limitKey] = append(t.by[one.limitKey], one)
}

// remove gives up a seat. A seat that was removed already stays removed.
func (t *streams) remove(one *seat) {
	seats := t.by[one.limitKey]
	i := slices.Index(seats, one)
	if i < 0 {
		return
	}
	t.all--
	if t.by[one.limitKey] = slices.Delete(seats, i, i+1); len(seats) == 1 {
		delete(t.by, one.limitKey)
	}
}

func (t *streams) leave(one *seat) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.remove(one)
}

// Close ends all streams. The rest of the API continues. Serve calls Close at shutdown. A program
// that serves the API with its own HTTP server must pass Close to RegisterOnShutdown.
func (s *Server) Close() {
	s.streams.end()
	s.feed.Close()
}

// stream is an open stream.
type stream struct {
	s       *Server
	w       http.ResponseWriter
	control *http.ResponseController
	r       *http.Request // its context ends with the connection, not with the request's deadline
	may     access
	seat    *seat

	who     *auth.Principal
	checked time.Time // when access was last checked
	wrote   time.Time
	begun   bool
}

// openStream turns an answer into a stream. Until the first message the answer may still be a
// problem.
func (s *Server) openStream(w http.ResponseWriter, r *http.Request, may access) (*stream, error) {
	select {
	case <-s.streams.ending:
		return nil, noStream.problem("This node is shutting down; ask another node.")
	default:
	}

	p := auth.Of(r.Context())
	seat, err := s.streams.enter(p)
	if err != nil {
		return nil, err
	}

	now := time.Now()
	return &stream{
		s: s, w: w, control: http.NewResponseController(w), r: r.WithContext(unbounded(r.Context())),
		may: may, seat: seat, who: p, checked: now, wrote: now,
	}, nil
}

// leave frees the stream's seat.
func (st *stream) leave() { st.s.streams.leave(st.seat) }

// begin writes the headers of a stream. It reports whether messages follow. After a HEAD request
// none follow.
func (st *stream) begin() (bool, error) {
	h := st.w.Header()
	h.Set("Content-Type", mediaEvents)
	h.Set(accelHeader, "no")
	if st.r.ProtoMajor == 1 {
		h.Set("Connection", "close") // the deadlines set here would also apply to the next request
	}

	st.begun = true
	if st.r.Method == http.MethodHead {
		return false, nil
	}
	return true, st.write([]byte(fmt.Sprintf("retry: %d\n\n", retryAfter.Milliseconds())))
}

// errGone ends a stream whose subscriber has disconnected.
var errGone = errors.New("the listener has gone")

// farewell ends a stream and gives the subscriber the reason.
type farewell struct{ reason string }

func (f *farewell) Error() string { return f.reason }

// over returns the result of a stream's handler. Once the stream has begun, over sends the reason
// as a message instead of an error.
func (st *stream) over(err error) error {
	if !st.begun {
		return err
	}
	var f *farewell
	if errors.As(err, &f) {
		_ = st.send("close", "", view.Close{Reason: f.reason})
	}
	return nil
}

// send writes one message. The id "" means none.
func (st *stream) send(event, id string, data any) error {
	text, err := json.Marshal(data)
	if err != nil {
		return fmt.Errorf("event %s: %w", event, err)
	}
	return st.write(message(nil, event, id, text))
}

// message appends one message to a buffer. data must be one line.
func message(to []byte, event, id string, data []byte) []byte {
	b := bytes.NewBuffer(to)
	if id != "" {
		fmt.Fprintf(b, "id: %s\n", id)
	}
	fmt.Fprintf(b, "event: %s\ndata: %s\n\n", event, data)
	return b.Bytes()
}

// write writes bytes of a stream. It first extends the server's write deadline, which is meant for
// short answers.
func (st *stream) write(b []byte) error {
	if err := st.control.SetWriteDeadline(time.Now().Add(slowWrite)); err != nil &&
		!errors.Is(err, http.ErrNotSupported) {
		return errGone
	}

	if _, err := st.w.Write(b); err != nil {
		return errGone
	}
	if err := st.control.Flush(); err != nil {
		return errGone
	}

	st.wrote = time.Now()
	return nil
}

// idle waits for news, at most for the given time. Meanwhile it keeps the connection alive and
// checks the subscriber's access. An error ends the stream.
func (st *stream) idle(news <-chan struct{}, most time.Duration) error {
	end := time.Now().Add(most)
	for {
		if err := st.look(); err != nil {
			return err
		}

		now := time.Now()
		if now.Sub(st.wrote) >= st.s.streams.beat {
			if err := st.write([]byte(": \n\n")); err != nil {
				return err
			}
		}

		wait := max(0, min(end.Sub(now), accessCheckEvery, st.s.streams.beat))
		select {
		case <-st.r.Context().Done():
			return errGone
		case <-st.s.streams.ending:
			return &farewell{"the node is shutting down"}
		case <-st.seat.taken:
			return &farewell{"the node reached its maximum of streams, and you had the most: one was closed for another caller"}
		case <-news:
			return nil
		case <-time.After(wait):
		}

		if !time.Now().Before(end) {
			return nil
		}
	}
}

// look checks access again if the last check is old. If the database does not answer, access cannot
// be checked. The stream then continues: without the database there is nothing new to send either.
func (st *stream) look() error {
	now := time.Now()
	if now.Sub(st.checked) < accessCheckEvery {
		return nil
	}

	st.checked = now
	r, cancel := st.bounded()
	defer cancel()

	p, err := st.s.authenticate(r, now)
	if err == nil {
		err = st.s.allow(r, p, st.may)
	}

	var (
		refused *auth.Refused
		problem *Problem
	)
	switch {
	case err == nil:
		st.who = p
	case errors.As(err, &refused):
		return &farewell{refused.Why}
	case errors.As(err, &problem) && problem.Status < 500:
		return &farewell{problem.Title + ": " + problem.Detail}
	}

	return nil
}

// bounded returns the request with a time limit for database reads.
func (st *stream) bounded() (*http.Request, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(st.r.Context(), streamRead)
	return st.r.WithContext(ctx), cancel
}

// wantsEvents reports whether a client asks for a stream.
func wantsEvents(r *http.Request) bool {
	return strings.Contains(r.Header.Get("Accept"), mediaEvents)
}

// endlessKey is the key under which the middleware keeps the request's original context, which has
// no deadline.
type endlessKey struct{}

// endless is a context with the values of one context, and the deadline and cancellation of
// another.
type endless struct {
	context.Context // the values
	until           context.Context
}

func (e endless) Deadline() (time.Time, bool) { return e.until.Deadline() }
func (e endless) Done() <-chan struct{}       { return e.until.Done() }
func (e endless) Err() error                  { return e.until.Err() }

// unbounded returns a context without the time limit that the middleware deadline set.
func unbounded(ctx context.Context) context.Context {
	if until, ok := ctx.Value(endlessKey{}).(context.Context); ok {
		return endless{ctx, until}
	}
	return ctx
}
