package api

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"go-crontab/api/openapi"
	"go-crontab/api/view"
	"go-crontab/internal/auth"
	"go-crontab/internal/feed"
	"go-crontab/job"
	"go-crontab/job/problem"
)

// addCount adds the runs that c counts to v.
func addCount(v *view.RunCounts, c *feed.Count) {
	v.Started += c.Started
	for to, o := range map[*int64]job.Outcome{
		&v.Succeeded: job.Succeeded, &v.Failed: job.Failed, &v.TimedOut: job.TimedOut, &v.Killed: job.Killed,
		&v.Lost: job.Lost, &v.Skipped: job.Skipped, &v.Missed: job.Missed, &v.Superseded: job.Superseded,
	} {
		*to += c.Ended[o]
	}
}

// maxCounts is the largest number of jobs with separate counts in one event. The busiest jobs are
// counted separately, all other jobs together.
const maxCounts = 500

func viewOfEvent(e *feed.Event) *view.Event {
	v := &view.Event{
		ID: e.ID, Kind: string(e.Kind), At: e.At.Time(), Action: e.Action, App: e.App, Job: e.Job, Name: e.Name,
		What: e.What, Who: e.Who, Reason: e.Reason,
	}

	if e.JobID != 0 {
		v.JobID = strconv.FormatInt(e.JobID, 10)
	}
	if e.Run != nil {
		v.Run = viewOfRun(e.Run)
	}

	if b := e.Backfill; b != nil {
		v.Backfill = &view.BackfillStatus{
			ID: strconv.FormatInt(b.ID, 10), State: string(b.State), Total: b.Total, Planned: b.Planned,
			LeftOut: b.LeftOut,
		}
	}

	if e.Alert != nil {
		a := viewAlert(e.Alert)
		v.Alert = &a
	}

	return v
}

// encodeEvent encodes an event as all subscribers get it.
func encodeEvent(e *feed.Event) []byte {
	b, _ := json.Marshal(viewOfEvent(e)) // marshalling plain values cannot fail
	return b
}

// listening is the filter of a subscriber.
type listening struct {
	app   string
	jobID int64
	kinds []string // nil: all
}

// encode returns the text of an event for a subscriber. It returns nil if the event is filtered
// out, or if the subscriber may not see it.
func (l *listening) encode(e *feed.Event, who *auth.Principal) []byte {
	kind := string(e.Kind)
	if e.Kind == feed.KindRuns {
		kind = string(feed.KindRun)
	}
	if l.kinds != nil && e.Kind != feed.KindReload && !slices.Contains(l.kinds, kind) {
		return nil
	}

	if e.Kind != feed.KindRuns {
		if !sees(who, e) || !l.wants(e.App, e.JobID) {
			return nil
		}
		return e.Data
	}

	// One event counts the runs of many jobs. Count only the jobs that the subscriber may see.
	v := viewOfEvent(e)
	for i := range e.Counts {
		c := &e.Counts[i]
		if !who.MayIn(viewer, c.App) || !l.wants(c.App, c.JobID) {
			continue
		}

		to := v.Other
		switch {
		case len(v.Counts) < maxCounts:
			to = &view.RunCounts{App: c.App, JobID: strconv.FormatInt(c.JobID, 10), Job: c.Name}
			v.Counts = append(v.Counts, to)
		case to == nil:
			to = &view.RunCounts{}
			v.Other = to
		}

		addCount(to, c)
	}

	if v.Counts == nil {
		return nil
	}

	b, _ := json.Marshal(v)
	return b
}

func (l *listening) wants(app string, jobID int64) bool {
	return (l.app == "" || app == "" || app == l.app) && (l.jobID == 0 || jobID == 0 || jobID == l.jobID)
}

// sees reports whether a principal may see an event. The rule is the same as for the event's audit
// line or run.
func sees(who *auth.Principal, e *feed.Event) bool {
	switch {
	case e.App != "":
		return who.MayIn(viewer, e.App)
	case e.Open:
		return true
	}
	return who.Sees() == nil
}

// wordsParam is a list of fixed words with commas between them.
type wordsParam struct {
	declared
	words []string
}

func (p wordsParam) schema() *openapi.Schema {
	one := "(" + strings.Join(p.words, "|") + ")"
	s := textOf("")
	s.Pattern = "^" + one + "(," + one + ")*$"
	return s
}

// wordList returns the words of a parameter; nil if absent.
func (q *query) wordList(p wordsParam) []string {
	v := q.given(p.name)
	if v == "" {
		return nil
	}

	words := strings.Split(v, ",")
	for _, word := range words {
		if !slices.Contains(p.words, word) {
			q.wrong(p.name, problem.NotOneOf, cutShort(word), strings.Join(p.words, ", "))
			return nil
		}
	}

	return words
}

// eventsAtOnce is the number of events taken from the feed at a time.
const eventsAtOnce = 256

// events: GET /api/v1/events. It sends changes until the subscriber disconnects or loses access, or
// the node stops.
func (s *Server) events(w http.ResponseWriter, r *http.Request) error {
	q := newQuery(r)
	want := &listening{app: q.text(ofAppParam), jobID: q.number(ofJobParam), kinds: q.wordList(eventKinds)}
	if err := q.err(); err != nil {
		return err
	}
	if _, err := s.now(); err != nil {
		return err
	}

	st, err := s.openStream(w, r, may(viewer, filtered))
	if err != nil {
		return err
	}
	defer st.leave()

	if r.Method == http.MethodHead {
		_, err = st.begin()
		return err
	}

	bounded, cancel := st.bounded()

	last := r.Header.Get(lastEventID)
	l, resumed, err := s.feed.Listen(bounded.Context(), last)
	cancel()
	if err != nil {
		p := unavailable.problem("Events cannot be read now. Try again in a moment, or ask another node.")
		p.cause = err
		return p
	}
	defer l.Close()
	if _, err := st.begin(); err != nil {
		return st.over(err)
	}
	return st.over(st.tell(l, want, last != "", resumed))
}

// tell sends events to a subscriber. It always returns an error.
func (st *stream) tell(l *feed.Listener, want *listening, again, resumed bool) error {
	hello := view.Event{Kind: "hello", Action: "begin", Name: st.s.cfg.Node, At: st.now()}
	if resumed {
		hello.Action = "resume"
	}
	if err := st.send(hello.Kind, "", hello); err != nil {
		return err
	}

	if again && !resumed {
		if err := st.missed("this node no longer has the event to continue after"); err != nil {
			return err
		}
	}

	// Send a batch, then wait for news unless the batch was full.
	for {
		events, missed, news := l.Next(eventsAtOnce)
		var text []byte
		for i := range events {
			if data := want.encode(&events[i].Event, st.who); data != nil {
				text = message(text, string(events[i].Kind), events[i].Place, data)
			}
		}

		if text != nil {
			if err := st.write(text); err != nil {
				return err
			}
		}

		if missed > 0 {
			if err := st.missed(strconv.FormatInt(missed, 10) +
				" events came faster than the client read them"); err != nil {
				return err
			}
		}

		if len(events) == eventsAtOnce {
			news = atOnce
		}
		if err := st.idle(news, time.Hour); err != nil {
			return err
		}
	}
}

// atOnce is a closed channel.
var atOnce = func() chan struct{} { c := make(chan struct{}); close(c); return c }()

func (st *stream) missed(reason string) error {
	return st.send(string(feed.KindReload), "", view.Event{
		Kind: string(feed.KindReload), Action: feed.Missed, At: st.now(), Reason: reason,
	})
}

func (st *stream) now() time.Time { return job.MicrosOf(st.s.cfg.Now()).Time() }
