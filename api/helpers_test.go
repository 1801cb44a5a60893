package api_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"go-crontab/api"
	"go-crontab/internal/auth"
	"go-crontab/node"
	"go-crontab/session"
	"go-crontab/sql"
	"go-crontab/sql/read"
	"go-crontab/test/testdb"
)

// site is a node with its API and its own schema.
type site struct {
	t     testing.TB
	dsn   string
	db    *read.DB
	node  *node.Node
	cfg   api.Config
	url   string
	token string // sent by call; "" for none. At first it is an admin's
	stop  context.CancelFunc
	done  chan struct{} // closed when the node has stopped
	http  *http.Client
	logs  *logs

	madeUp bool // its editor gives impossible answers, so only problems are checked against the document
}

// start runs a site until the end of the test. mod may change the API's configuration.
func start(t testing.TB, mod func(*api.Config)) *site {
	t.Helper()
	dsn := testdb.DSN(t)
	migrator, err := sql.Open(dsn, sql.MigrateTimeouts, 2)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := migrator.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}

	token, err := auth.Issuer{DB: migrator}.Bootstrap(t.Context(), false)
	if err != nil {
		t.Fatal(err)
	}

	migrator.Close()
	s := &site{t: t, dsn: dsn, token: token, logs: &logs{t: t}, done: make(chan struct{})}
	log := slog.New(slog.NewTextHandler(s.logs, &slog.HandlerOptions{Level: slog.LevelDebug}))
	s.node,
		err = node.New(node.Config{DSN: dsn, Name: "knoten-1", Expiry: session.DefaultExpiry, LookAhead: time.Second,
		// tests write lines that are years old
		Grace: 200 * time.Millisecond, Log: log, SpoolDir: t.TempDir(), AuditKept: -1})
	if err != nil {
		t.Fatal(err)
	}

	ctx, stop := context.WithCancel(context.Background())
	s.stop = stop
	go func() {
		defer close(s.done)
		if err := s.node.Run(ctx); err != nil {
			t.Errorf("node: %v", err)
		}
	}()

	t.Cleanup(s.stopNode)
	s.db = s.node.Reads()
	s.cfg = api.Config{
		DB: s.db, Now: s.node.Now, Node: "knoten-1", Version: "v0.0.0-test", Log: log,
		Editor: api.EditorOf(s.node.Editor),
		Ready: func() error {
			if s.node.Status().Ready {
				return nil
			}
			return errors.New("no session yet")
		},
	}

	if mod != nil {
		mod(&s.cfg)
	}

	s.serve()
	await(t, "the node is ready", 15*time.Second, func() bool { return s.node.Status().Ready })
	return s
}

func (s *site) stopNode() {
	s.stop()
	<-s.done
}

// reopen opens the database again after the node was stopped, which closes its pools.
func (s *site) reopen() {
	s.t.Helper()
	db, err := sql.Open(s.dsn, sql.DefaultTimeouts, 4)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { db.Close() })
	s.db = &read.DB{DB: db}
	s.cfg.DB = s.db
	s.serve()
}

// serve starts a new server of the API in place of the one before.
func (s *site) serve() { s.serveHandler(api.New(s.cfg)) }

func (s *site) serveHandler(h http.Handler) {
	server := httptest.NewServer(h)
	s.t.Cleanup(server.Close)
	if a, ok := h.(*api.Server); ok {
		s.t.Cleanup(a.Close)
	}
	s.url, s.http = server.URL, server.Client()
}

// as returns the site with another token; "" for none.
func (s *site) as(token string) *site {
	other := *s
	other.token = token
	return &other
}

// newToken makes a token.
func (s *site) newToken(name string, role auth.Role, apps ...string) string {
	s.t.Helper()
	_, token, err := auth.Issuer{DB: s.db.DB}.Create(s.t.Context(), auth.Spec{
		Name: name, Grant: auth.Grant{Role: role, Apps: apps},
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return token
}

// wellFormed has the form of a token, and is invalid in every cluster.
const wellFormed = "gocrontab_ZIVimXnDt6BEEj8u3K9zpzanbh7jTBS4QtI3iJPy0W106oEIh"

// await waits until a condition holds. limit is meant for a quiet machine, so it waits up to four
// times as long.
func await(t testing.TB, what string, limit time.Duration, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(4 * limit); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within %s: %s", 4*limit, what)
		}
	}
}

// reply is an answer of the API.
type reply struct {
	t      testing.TB
	what   string // the request
	status int
	header http.Header
	body   string
}

// call sends a request, and checks the answer against the document. body is nil, text to send as it
// is, or a value to encode; header holds names and values.
func (s *site) call(method, path string, body any, header ...string) *reply {
	s.t.Helper()
	sent := ""
	switch b := body.(type) {
	case nil:
	case string:
		sent = b
	default:
		text, err := json.Marshal(b)
		if err != nil {
			s.t.Fatal(err)
		}
		sent = string(text)
	}

	var payload io.Reader
	if body != nil {
		payload = strings.NewReader(sent)
	}

	req, err := http.NewRequest(method, s.url+path, payload)
	if err != nil {
		s.t.Fatal(err)
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if s.token != "" {
		req.Header.Set("Authorization", "Bearer "+s.token)
	}

	for i := 0; i < len(header); i += 2 {
		if header[i] == "Host" {
			req.Host = header[i+1]
		} else {
			req.Header.Set(header[i], header[i+1])
		}
	}

	resp, err := s.http.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()

	text, err := readAnswer(resp)
	if err != nil {
		s.t.Fatal(err)
	}

	r := &reply{s.t, method + " " + path, resp.StatusCode, resp.Header, string(text)}
	if c := getContract(s.t); s.madeUp {
		c.checkProblem(r)
	} else {
		c.check(r, method, path, sent, req.Header.Get("Content-Type"))
	}

	return r
}

// want fails the test at once if the status is different.
func (r *reply) want(status int) *reply {
	r.t.Helper()
	if r.status != status {
		r.t.Fatalf("%s: got %d %s, want %d", r.what, r.status, r.body, status)
	}
	return r
}

// object decodes the body.
func (r *reply) object() object {
	r.t.Helper()
	var o object
	d := json.NewDecoder(strings.NewReader(r.body))
	d.UseNumber()
	if err := d.Decode(&o); err != nil {
		r.t.Fatalf("%s: %v in %q", r.what, err, r.body)
	}
	return o
}

// object is a JSON object.
type object map[string]any

// text returns the value of a field as text; "" if it is absent.
func (o object) text(path ...string) string {
	var v any = map[string]any(o)
	for _, name := range path {
		m, _ := v.(map[string]any)
		if v = m[name]; v == nil {
			return ""
		}
	}
	return fmt.Sprint(v)
}

func (o object) items(name string) []object {
	list, _ := o[name].([]any)
	out := make([]object, len(list))
	for i := range list {
		out[i], _ = list[i].(map[string]any)
	}
	return out
}

// create adds a job and returns it. Fields that are nil in extra are left out.
func (s *site) create(name string, extra object) object {
	s.t.Helper()
	body := object{"name": name, "command": "true", "schedule": "0 3 1 1 *"}
	for k, v := range extra {
		if body[k] = v; v == nil {
			delete(body, k)
		}
	}
	return s.call("POST", "/api/v1/jobs", body).want(201).object()
}

// walk follows a list to its end and returns the ids.
func (s *site) walk(path string) (ids []string, items []object) {
	s.t.Helper()
	sep := "?"
	if strings.Contains(path, "?") {
		sep = "&"
	}

	for cursor := ""; ; {
		o := s.call("GET", path+cursor, nil).want(200).object()
		for _, item := range o.items("items") {
			ids, items = append(ids, item.text("id")), append(items, item)
		}

		next := o.text("next")
		if next == "" {
			return ids, items
		}
		if len(o.items("items")) == 0 {
			s.t.Fatalf("%s: an empty page that is not the last", path)
		}

		cursor = sep + "cursor=" + next
	}
}

// counts are the numbers of rows that requests may change, and the number of changes of jobs.
func (s *site) counts() string {
	s.t.Helper()
	out := ""
	for _, query := range []string{
		"SELECT COUNT(*) FROM job", "SELECT COALESCE(SUM(changes), 0) FROM job", "SELECT COUNT(*) FROM run",
		"SELECT COUNT(*) FROM request",
	} {
		out += fmt.Sprint(s.count(query), " ")
	}
	return out
}

func (s *site) count(query string, args ...any) (n int) {
	s.t.Helper()
	if err := s.db.Raw().QueryRow(query, args...).Scan(&n); err != nil {
		s.t.Fatal(err)
	}
	return n
}

// logs records the log, and shows it when the test fails.
type logs struct {
	t    testing.TB
	mu   sync.Mutex
	text strings.Builder
}

func (l *logs) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text.Write(b)
	return len(b), nil
}

func (l *logs) has(s string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Contains(l.text.String(), s)
}
