package alert

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go-crontab/execute"
	"go-crontab/job"
	"go-crontab/sql"
	"go-crontab/sql/read"
	"go-crontab/test/faultproxy"
	"go-crontab/test/testdb"

	"github.com/google/uuid"
)

const second = job.Micros(1_000_000)

// fixture is a cluster without nodes: the tests write its rows and set its clock.
type fixture struct {
	*testing.T
	dsn string
	db  *read.DB
	own *sql.DB // the tests' own pool, with long timeouts
	now job.Micros
}

func setUp(t *testing.T) *fixture {
	t.Parallel()
	dsn := testdb.DSN(t)
	m, err := sql.Open(dsn, sql.MigrateTimeouts, 2)
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { m.Close() })
	if _, _, err := m.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}

	db, err := sql.Open(dsn, sql.DefaultTimeouts, 8)
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { db.Close() })
	f := &fixture{t, dsn, &read.DB{DB: db}, m, job.MicrosOf(time.Now())}
	f.exec("INSERT INTO life (id, session, node, started) VALUES (7, REPEAT('7', 16), 'n1', 1)")
	// see sender
	f.exec(`INSERT INTO secret (name, version, key_id, sealed, created, updated)
		VALUES ('s', 1, 'k', '', 1, 1), ('address', 1, 'k', '', 1, 1)`)
	return f
}

// proxied opens a pool of one connection through a fault proxy.
func (f *fixture) proxied() (*sql.DB, *faultproxy.Proxy) {
	f.Helper()
	proxy := faultproxy.Before(f.T, f.dsn)
	db, err := sql.Open(proxy.DSN(f.dsn), sql.DefaultTimeouts, 1)
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { db.Close() })
	return db, proxy
}

func (f *fixture) exec(query string, args ...any) int64 {
	f.Helper()
	r, err := f.own.Raw().Exec(query, args...)
	if err != nil {
		f.Fatal(err)
	}
	id, _ := r.LastInsertId()
	return id
}

func (f *fixture) count(query string, args ...any) (n int) {
	f.Helper()
	if err := f.own.Raw().QueryRow(query, args...).Scan(&n); err != nil {
		f.Fatal(err)
	}
	return n
}

func (f *fixture) want(what string, want int, query string, args ...any) {
	f.Helper()
	if got := f.count(query, args...); got != want {
		f.Errorf("%s: got %d, want %d", what, got, want)
	}
}

// job inserts a job.
func (f *fixture) job(app, name string, more string) int64 {
	f.Helper()
	f.exec("INSERT IGNORE INTO app (name) VALUES (?)", app)
	id := f.exec("INSERT INTO job (app_id, name, hash) SELECT id, ?, 0 FROM app WHERE name = ?", name, app)
	f.exec("INSERT INTO job_version (job_id, version, definition, created) VALUES (?, 1, ?, 1)",
		id, fmt.Sprintf(`{"app":%q,"name":%q,"owner":"ann@example.com","labels":{"team":"data"}%s}`, app, name, more))
	return id
}

// pinged records that jobs have a ping.
func (f *fixture) pinged(ids ...int64) {
	f.Helper()
	for _, id := range ids {
		f.exec("INSERT INTO job_ref (kind, name, job_id) VALUES (4, '', ?)", id)
	}
}

// minted counts the ids of runs.
var minted atomic.Int64

// run inserts a run that ended now, and the note of its end.
func (f *fixture) run(jobID int64, o job.Outcome, late job.Micros) int64 {
	f.Helper()
	n := minted.Add(1)
	started := f.now - 500
	f.exec(`INSERT INTO run (id, job_id, app_id, due, kind, state, owner, claim, due_now, hash,
			session, started, ended, outcome, final, reason)
		VALUES (?, ?, (SELECT app_id FROM job WHERE id = ?), ?, 'schedule', 'ended', -2, 1, ?, 0,
			7, ?, ?, ?, 1, 'exit code 1')`,
		n, jobID, jobID, int64(f.now)-1000+n, int64(started-late), int64(started), int64(f.now), o.String())
	f.note(n, jobID, o)
	return n
}

// note inserts the note of the end of a run.
func (f *fixture) note(run, jobID int64, o job.Outcome) {
	f.Helper()
	f.exec("INSERT INTO ending (at, runs) VALUES (?, ?)", int64(f.now), noteOf(run, jobID, o))
}

// noteOf returns the part of an ending that describes one run.
func noteOf(run, jobID int64, o job.Outcome) []byte {
	return append(binary.AppendVarint(binary.AppendVarint(nil, run), jobID), byte(o))
}

// live inserts a scheduled run that has not ended, and returns its id.
func (f *fixture) live(jobID int64, state job.State, due job.Micros) int64 {
	f.Helper()
	n := minted.Add(1)
	f.exec(`INSERT INTO run (id, job_id, app_id, due, kind, state, owner, claim, due_now, hash, started)
		VALUES (?, ?, (SELECT app_id FROM job WHERE id = ?), ?, 'schedule', ?, ?, 1, ?, 0, ?)`,
		n, jobID, jobID, int64(due), state, ownerIn(state), int64(due), int64(startedIn(state, due)))
	return n
}

// ownerIn returns the owner of a run in a state.
func ownerIn(state job.State) int {
	switch state {
	case job.Idle:
		return 0
	case job.Waiting:
		return -1
	}
	return 7
}

func startedIn(state job.State, due job.Micros) job.Micros {
	if state == job.Executing {
		return due
	}
	return 0
}

// noneLive deletes all runs that have not ended.
func (f *fixture) noneLive() {
	f.Helper()
	f.exec("DELETE FROM run WHERE state <> 'ended'")
}

// session is a node's session for tests.
type fakeSession struct {
	f    *fixture
	id   uuid.UUID
	dead bool
}

func (s *fakeSession) ID() uuid.UUID   { return s.id }
func (s *fakeSession) Node() string    { return "n-" + s.id.String()[:4] }
func (s *fakeSession) Now() job.Micros { return s.f.now }
func (s *fakeSession) Fresh() bool     { return !s.dead }

func (f *fixture) session() *fakeSession {
	s := &fakeSession{f: f, id: uuid.New()}
	f.exec("INSERT INTO session (id, node, started, beat_at, labels, handlers) VALUES (?, ?, 1, 1, '{}', '[]')",
		s.id[:], s.Node())
	return s
}

func (f *fixture) log() *slog.Logger { return slog.New(slog.NewTextHandler(f.Output(), nil)) }

// blind is a Lookout that never knows.
type blind struct{}

func (blind) NothingToWatch() bool { return false }
func (blind) NothingToSend() bool  { return false }

func (f *fixture) evaluator(s *fakeSession) *Evaluator {
	return NewEvaluator(EvaluatorConfig{DB: read.Watch{DB: f.db}, Session: s, Lookout: blind{}, Log: f.log()})
}

type fakeSecrets map[job.Secret]string

func (m fakeSecrets) Values(_ context.Context, _ string, names []job.Secret) (map[job.Secret]string, error) {
	out := map[job.Secret]string{}
	for _, n := range names {
		if v, ok := m[n]; ok {
			out[n] = v
		}
	}
	return out, nil
}

func (f *fixture) sender(s *fakeSession) *Sender {
	o := NewOutside(OutsideConfig{Dial: (&net.Dialer{Timeout: 30 * time.Second}).DialContext, Mask: execute.Mask,
		Secrets: fakeSecrets{"s": "hunter22",
			"address": "chat.example/hook?access_token=" + strings.Repeat("3f9a", 32)}, Node: s.Node(),
		Sign: func(secret []byte, _ time.Time, key string, _ *http.Request, body string) (string, string) {
			return "X-Signed", fmt.Sprintf("%s %s %d", secret, key, len(body))
		}})
	f.Cleanup(o.Close)
	return NewSender(SenderConfig{DB: read.Watch{DB: f.db}, Session: s, Outside: o, Lookout: blind{}, Log: f.log()})
}

// step evaluates until there is nothing more to read.
func (f *fixture) step(e *Evaluator) {
	f.Helper()
	for {
		again, err := e.step(f.Context(), f.now)
		if err != nil {
			f.Fatal(err)
		}
		if again != 0 {
			return
		}
	}
}

// send sends the due messages, and waits for the lanes.
func (f *fixture) send(s *Sender) {
	f.Helper()
	if _, err := s.look(f.Context(), f.now); err != nil {
		f.Fatal(err)
	}
	s.lanes.Wait()
}

func (f *fixture) store() *Store { return &Store{DB: f.db.DB} }

func (f *fixture) channel(c job.AlertChannel) {
	f.Helper()
	if _, _, err := f.store().PutChannel(f.Context(), c); err != nil {
		f.Fatal(err)
	}
}

// rule inserts a rule that is some time old.
func (f *fixture) rule(r job.AlertRule) {
	f.Helper()
	if _, _, err := f.store().PutRule(f.Context(), r); err != nil {
		f.Fatal(err)
	}
	f.exec("UPDATE alert_rule SET updated = 1")
}

// written is a log kept in memory.
type written struct {
	mu   sync.Mutex
	text strings.Builder
}

func (w *written) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.Write(b)
}

func (w *written) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.String()
}

// hook is an HTTP server that records its requests.
type hook struct {
	*httptest.Server
	mu     sync.Mutex
	got    []webhookBody
	raw    []string
	header []http.Header
	paths  []string
	answer func(n int) int // status of the n-th request, from 1
	say    string
}

func newHook(t *testing.T) *hook {
	h := &hook{}
	h.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		var v webhookBody
		_ = json.Unmarshal(b, &v)
		h.mu.Lock()
		h.got, h.raw, h.header, h.paths = append(h.got, v), append(h.raw, string(b)), append(h.header,
			r.Header), append(h.paths, r.Method+" "+r.URL.RequestURI())
		n, answer, say := len(h.got), h.answer, h.say
		h.mu.Unlock()
		status := 200
		if answer != nil {
			status = answer(n)
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, say)
	}))

	t.Cleanup(h.Close)
	return h
}

func (h *hook) seen() []webhookBody {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.got)
}

// said lists the events and their jobs in the order of arrival.
func (h *hook) said() (out []string) {
	for _, m := range h.seen() {
		for _, it := range m.Items {
			out = append(out, it.What+" "+string(it.Event)+" "+it.App+"/"+it.Job)
		}
	}
	return out
}
