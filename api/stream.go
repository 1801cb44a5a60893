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

	"go-crontab/internal/auth"
)

// Streams are answers that go on: server-sent events. They hold a connection each, so there are
// bounds, and they see to it themselves that whoever listens still may.
const (
	streamsOfNode   = 64 // below maxConnections: the node must answer others
	streamsOfAdmins = 4  // of them, kept for admins of the whole cluster
	streamsOfToken  = 16

	heartbeat  = 15 * time.Second // after so long without a message comes a comment
	lookAgain  = 3 * time.Second  // how often it is asked again who listens
	slowWrite  = 10 * time.Second // a listener that takes a message slower than this has gone, or might as well have
	streamRead = 5 * time.Second  // bounds what is read of the database for a stream
	retryAfter = 2 * time.Second  // browsers connect again after this
)

// Headers of streams.
const (
	lastEventID = "Last-Event-ID"
	accelHeader = "X-Accel-Buffering"
)

// streams are those that the node has. When all are taken, a holder of few takes one from the
// holder of most: so nobody keeps others out by opening many.
type streams struct {
	mu     sync.Mutex
	all    int
	by     map[string][]*seat // by holder, the oldest first
	ending chan struct{}      // closed when no stream may go on
	end    func()
	beat   time.Duration // see heartbeat
}

func newStreams() *streams {
	t := &streams{by: map[string][]*seat{}, ending: make(chan struct{}), beat: heartbeat}
	t.end = sync.OnceFunc(func() { close(t.ending) })
	return t
}

// seat is what a stream takes of a node.
type seat struct {
	holder string
	taken  chan struct{} // closed when another holder has got it
}

// enter takes a seat for a new stream of a caller.
func (t *streams) enter(p *auth.Principal) (*seat, error) {
	key := holder(p)
	most := streamsOfNode
	if !p.May(admin) {
		most -= streamsOfAdmins
	}

	t.mu.Lock()
	defer t.mu.Unlock()
	mine := len(t.by[key])
	if mine >= streamsOfToken {
		return nil, slowDown(heartbeat, "%s has %d streams on this node already; close one, or ask another node.",
			p.Name, streamsOfToken)
	}

	if t.all >= most && !t.makeRoom(mine) {
		return nil, noStream.problem(
			"The node has %d streams, which is all that it may have, and %s has %d of them; ask another node.", t.all,
			p.Name, mine)
	}

	one := &seat{holder: key, taken: make(chan struct{})}
	t.add(one)
	return one, nil
}

// makeRoom ends the oldest stream of the holder of most, for one who has fewer even with one more.
// It reports whether there was such a stream.
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
	t.by[one.holder] = append(t.by[one.holder], one)
}

// remove gives up a seat, unless it was given up before.
func (t *streams) remove(one *seat) {
	seats := t.by[one.holder]
	i := slices.Index(seats, one)
	if i < 0 {
		return
	}
	t.all--
	if t.by[one.holder] = slices.Delete(seats, i, i+1); len(seats) == 1 {
		delete(t.by, one.holder)
	}
}

func (t *streams) leave(one *seat) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.remove(one)
}

// Close ends all streams, so that whoever serves the API by an HTTP server of its own can shut that
// down: its method RegisterOnShutdown takes it. Serve does so by itself. The rest of the API goes
// on.
func (s *Server) Close() {
	s.streams.end()
	s.feed.Close()
}

// stream is one of them.
type stream struct {
	s       *Server
	w       http.ResponseWriter
	control *http.ResponseController
	r       *http.Request // with a context that ends with the connection, and not with the time that a request has
	may     access
	seat    *seat

	who    *auth.Principal
	looked time.Time // when it was asked last who listens
	wrote  time.Time
	begun  bool
}

// openStream makes a stream of an answer. Until the first message the answer may still be a
// problem.
func (s *Server) openStream(w http.ResponseWriter, r *http.Request, may access) (*stream, error) {
	select {
	case <-s.streams.ending:
		return nil, noStream.problem("The node stops; ask another one.")
	default:
	}

	p := auth.Of(r.Context())
	seat, err := s.streams.enter(p)
	if err != nil {
		return nil, err
	}

	now := time.Now()
	return &stream{s: s, w: w, control: http.NewResponseController(w), r: r.WithContext(unbounded(r.Context())),
		may: may, seat: seat, who: p, looked: now, wrote: now}, nil
}

// leave gives the seat of the stream to others.
func (st *stream) leave() { st.s.streams.leave(st.seat) }

// begin says that what follows is a stream. It tells whether anything follows: not for a HEAD.
func (st *stream) begin() (bool, error) {
	h := st.w.Header()
	h.Set("Content-Type", mediaEvents)
	h.Set(accelHeader, "no")
	if st.r.ProtoMajor == 1 {
		h.Set("Connection", "close") // the deadlines set here would be those of the next request
	}

	st.begun = true
	if st.r.Method == http.MethodHead {
		return false, nil
	}
	return true, st.write([]byte(fmt.Sprintf("retry: %d\n\n", retryAfter.Milliseconds())))
}

// errGone ends a stream of which nobody reads any more.
var errGone = errors.New("the listener has gone")

// farewell ends a stream with its reason.
type farewell struct{ reason string }

func (f *farewell) Error() string { return f.reason }

// over is what the handler of a stream returns when it was ended by an error.
func (st *stream) over(err error) error {
	if !st.begun {
		return err
	}
	var f *farewell
	if errors.As(err, &f) {
		_ = st.send("close", "", closeView{f.reason})
	}
	return nil
}

// closeView is the last message of a stream that the server ended.
type closeView struct {
	Reason string `json:"reason" doc:"Why, for people."`
}

// send writes one message. "" is no id.
func (st *stream) send(event, id string, data any) error {
	text, err := json.Marshal(data)
	if err != nil {
		return fmt.Errorf("event %s: %w", event, err)
	}
	return st.write(message(nil, event, id, text))
}

// message appends one message, data being one line.
func message(to []byte, event, id string, data []byte) []byte {
	b := bytes.NewBuffer(to)
	if id != "" {
		fmt.Fprintf(b, "id: %s\n", id)
	}
	fmt.Fprintf(b, "event: %s\ndata: %s\n\n", event, data)
	return b.Bytes()
}

// write puts off the server's bound on writing, which is that of short answers.
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

// idle waits for news, but not for longer than most. It keeps the connection alive and looks who
// listens. An error ends the stream.
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

		wait := max(0, min(end.Sub(now), lookAgain, st.s.streams.beat))
		select {
		case <-st.r.Context().Done():
			return errGone
		case <-st.s.streams.ending:
			return &farewell{"the node stops"}
		case <-st.seat.taken:
			return &farewell{"all streams of the node were taken, and you had most of them: one went to somebody else"}
		case <-news:
			return nil
		case <-time.After(wait):
		}

		if !time.Now().Before(end) {
			return nil
		}
	}
}

// look asks again who listens, if that was some time ago. While the database is away nobody can
// tell, and there is nothing to be told either.
func (st *stream) look() error {
	now := time.Now()
	if now.Sub(st.looked) < lookAgain {
		return nil
	}

	st.looked = now
	r, cancel := st.bounded()
	defer cancel()
	p, err := st.s.whoAsks(r, now)
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

// bounded is the request with a bound on what is read for it.
func (st *stream) bounded() (*http.Request, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(st.r.Context(), streamRead)
	return st.r.WithContext(ctx), cancel
}

// wantsEvents tells whether a client asks for a stream.
func wantsEvents(r *http.Request) bool {
	return strings.Contains(r.Header.Get("Accept"), mediaEvents)
}

// endlessKey is that of the context of a request before it was bounded.
type endlessKey struct{}

// endless is a context with the values of one and the end of another.
type endless struct {
	context.Context // the values
	until           context.Context
}

func (e endless) Deadline() (time.Time, bool) { return e.until.Deadline() }
func (e endless) Done() <-chan struct{}       { return e.until.Done() }
func (e endless) Err() error                  { return e.until.Err() }

// unbounded is the context of a request without the bound that deadline gave it.
func unbounded(ctx context.Context) context.Context {
	if until, ok := ctx.Value(endlessKey{}).(context.Context); ok {
		return endless{ctx, until}
	}
	return ctx
}
