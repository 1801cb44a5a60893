package api

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"go-crontab/job"
	"go-crontab/sql"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"
)

// Editor changes jobs.
type Editor interface {
	Create(ctx context.Context, spec job.Spec, paused bool) (job.Job, error)
	// Update returns job.ErrChanged when the job is not at the version.
	Update(ctx context.Context, id, version int64, spec job.Spec) (job.Job, error)
	Pause(ctx context.Context, id int64, p job.PauseRequest) (job.Job, error)
	Resume(ctx context.Context, id int64) (job.Job, error)
	Delete(ctx context.Context, id int64) error
	RunNow(ctx context.Context, id int64, key string) (job.Requested, error)
	Kill(ctx context.Context, l job.Launch) error
	// PutCalendar tells whether the calendar is new. version is the one that it must be at: 0 for any, -1 for none.
	PutCalendar(ctx context.Context, spec job.CalendarSpec, version int64) (isNew bool, err error)
	DeleteCalendar(ctx context.Context, name string) error // *job.InUse while jobs name it
	// PauseApp and ResumeApp are of the whole cluster when app is "".
	PauseApp(ctx context.Context, app string, p job.PauseRequest) (job.Pause, error)
	ResumeApp(ctx context.Context, app string) error
	PutGroup(ctx context.Context, name string, slots int) (sql.Group, error)
	Backfill(ctx context.Context, id int64, from, to time.Time, parallel int, missing bool, key string) (job.Backfill, error)
	CancelBackfill(ctx context.Context, id int64) (job.Backfill, error)
	DeleteGroup(ctx context.Context, name string) error // *job.InUse while jobs refer to it
	Cordon(ctx context.Context, node, reason string, drain bool) error
	Uncordon(ctx context.Context, node string) error
	DisableHandler(ctx context.Context, key, reason string) error
	EnableHandler(ctx context.Context, key string) error
}

// Config says what a server serves. DB, Editor, Now and Ready are needed.
type Config struct {
	DB     *sql.DB          // for reading
	Editor func() Editor    // returns nil while the node may not change anything
	Now    func() time.Time // MySQL's clock; zero before its first reading
	Ready  func() error     // why the node is not ready, or nil

	Node    string
	Version string
	Listen  string   // host:port at which it listens: a Host header may name it
	Hosts   []string // further host names, without ports, that a Host header may name
	Log     *slog.Logger
}

// Server is the HTTP API of one node.
type Server struct {
	cfg     Config
	hosts   hosts
	handler http.Handler
}

// New makes a server.
func New(cfg Config) *Server {
	if cfg.Log == nil {
		cfg.Log = slog.Default()
	}
	s := &Server{cfg: cfg, hosts: newHosts(cfg.Listen, cfg.Hosts)}
	s.handler = s.routes()
	return s
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.handler.ServeHTTP(w, r) }

// Bounds of a connection and of what it may hold up. A change may wait for a spawn window and for a database that
// fails over: requestTimeout leaves it the time, writeTimeout leaves the answer some.
const (
	headerTimeout   = 5 * time.Second
	readTimeout     = 15 * time.Second
	requestTimeout  = 20 * time.Second
	writeTimeout    = 30 * time.Second
	idleTimeout     = 60 * time.Second
	shutdownTimeout = 5 * time.Second
	maxHeader       = 16 << 10
	maxConnections  = 128
)

// Serve answers the connections of a listener until ctx ends, and closes it. Requests that are being answered by then
// get a few seconds to end.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	server := &http.Server{
		Handler:           s,
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeader,
		ErrorLog:          slog.NewLogLogger(s.cfg.Log.Handler(), slog.LevelDebug),
	}
	stopped := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() {
		bounded, cancel := context.WithTimeout(context.Background(), shutdownTimeout)
		defer cancel()
		err := server.Shutdown(bounded)
		if err != nil {
			err = errors.Join(err, server.Close())
		}
		stopped <- err
	})
	err := server.Serve(limitConnections(l, maxConnections))
	if stop() { // it ended by itself
		return err
	}
	return <-stopped
}

// handler answers one request, or returns why it does not.
type handler func(w http.ResponseWriter, r *http.Request) error

// routes is the table of what there is.
func (s *Server) routes() http.Handler {
	m := chi.NewRouter()
	m.Use(cleanRequestID, middleware.RequestID, s.logRequest, s.recoverPanic, protect, s.checkHost, s.checkOrigin, withActor, deadline, escapedPath, middleware.GetHead)
	m.NotFound(s.serve(noRoute))
	m.MethodNotAllowed(s.serve(wrongMethod(m)))

	on := func(method, pattern string, h handler, query ...string) {
		m.Method(method, pattern, s.serve(withQuery(query, h)))
	}
	on("GET", "/", s.home)
	on("GET", "/healthz", s.healthz)
	on("GET", "/readyz", s.readyz)

	on("POST", "/api/v1/jobs", s.createJob)
	on("GET", "/api/v1/jobs", s.listJobs, "app", "name", "state", "owner", "label", "limit", "cursor")
	on("GET", "/api/v1/jobs/{id}", s.getJob)
	on("PUT", "/api/v1/jobs/{id}", s.putJob)
	on("PATCH", "/api/v1/jobs/{id}", s.patchJob)
	on("DELETE", "/api/v1/jobs/{id}", s.deleteJob)
	on("GET", "/api/v1/apps/{app}/jobs/{name}", s.getJobNamed)
	on("PUT", "/api/v1/apps/{app}/jobs/{name}", s.putJobNamed)
	on("POST", "/api/v1/jobs/{id}/pause", s.pauseJob)
	on("POST", "/api/v1/jobs/{id}/resume", s.resumeJob)
	on("POST", "/api/v1/jobs/{id}/run", s.runJob)
	on("GET", "/api/v1/jobs/{id}/next", s.nextDue, "n", "from")
	on("GET", "/api/v1/jobs/{id}/explain", s.explain, "at")
	on("GET", "/api/v1/jobs/{id}/history", s.history, "outcome", "from", "to", "limit", "cursor")

	on("GET", "/api/v1/runs", s.listRuns, "job_id", "app", "state", "outcome", "node", "from", "to", "limit", "cursor")
	on("GET", "/api/v1/runs/{id}", s.getRun)
	on("GET", "/api/v1/runs/{id}/output", s.getOutput, "raw", "from")

	on("POST", "/api/v1/runs/{id}/kill", s.killRun)

	on("POST", "/api/v1/jobs/{id}/backfill", s.startBackfill)
	on("GET", "/api/v1/backfills", s.listBackfills, "job_id", "limit", "cursor")
	on("GET", "/api/v1/backfills/{id}", s.getBackfill)
	on("POST", "/api/v1/backfills/{id}/cancel", s.cancelBackfill)

	on("GET", "/api/v1/groups", s.listGroups, "limit", "cursor")
	on("GET", "/api/v1/groups/{name}", s.getGroup)
	on("PUT", "/api/v1/groups/{name}", s.putGroup)
	on("DELETE", "/api/v1/groups/{name}", s.deleteGroup)

	on("GET", "/api/v1/calendars", s.listCalendars, "limit", "cursor")
	on("POST", "/api/v1/calendars", s.createCalendar)
	on("GET", "/api/v1/calendars/{name}", s.getCalendar)
	on("PUT", "/api/v1/calendars/{name}", s.putCalendar)
	on("DELETE", "/api/v1/calendars/{name}", s.deleteCalendar)
	on("POST", "/api/v1/calendars/{name}/import", s.importCalendar, "format", "mode", "workday", "dry_run")
	on("GET", "/api/v1/calendars/{name}/days", s.calendarDays, "from", "to")

	on("GET", "/api/v1/nodes", s.listNodes)
	on("GET", "/api/v1/nodes/{name}", s.getNode)
	on("POST", "/api/v1/nodes/{name}/cordon", s.cordonNode)
	on("POST", "/api/v1/nodes/{name}/uncordon", s.uncordonNode)
	on("POST", "/api/v1/nodes/{name}/drain", s.drainNode)

	on("GET", "/api/v1/handlers", s.listHandlers)
	on("POST", "/api/v1/handlers/{key}/disable", s.disableHandler)
	on("POST", "/api/v1/handlers/{key}/enable", s.enableHandler)

	on("POST", "/api/v1/preview", s.preview)
	on("GET", "/api/v1/cluster", s.cluster)
	on("POST", "/api/v1/cluster/pause", s.pauseAll)
	on("POST", "/api/v1/cluster/resume", s.resumeAll)
	on("POST", "/api/v1/apps/{app}/pause", s.pauseAll)
	on("POST", "/api/v1/apps/{app}/resume", s.resumeAll)
	on("GET", "/api/v1/pauses", s.listPauses)
	on("GET", "/api/v1/audit", s.listAudit, "kind", "app", "job_id", "who", "from", "to", "limit", "cursor")
	return m
}

// serve answers with the problem of a handler's error.
func (s *Server) serve(h handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := h(w, r); err != nil {
			s.fail(w, r, err)
		}
	}
}

func noRoute(w http.ResponseWriter, r *http.Request) error {
	return notFound.problem("There is nothing at %s; GET / lists what there is.", cutShort(r.URL.Path))
}

// wrongMethod tells which methods there are, as an answer 405 must.
func wrongMethod(routes chi.Routes) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		var allowed []string
		for _, method := range []string{"GET", "POST", "PUT", "PATCH", "DELETE"} {
			if routes.Match(chi.NewRouteContext(), method, r.URL.EscapedPath()) {
				allowed = append(allowed, method)
			}
		}
		if allowed == nil {
			return noRoute(w, r) // the router looks at unusual methods before it looks at the path
		}
		if allowed[0] == "GET" {
			allowed = append(allowed, "HEAD")
		}
		list := strings.Join(allowed, ", ")
		w.Header().Set("Allow", list)
		return methodNotAllowed.problem("%s takes %s, not %s.", cutShort(r.URL.Path), list, cutShort(r.Method))
	}
}

// param returns a part of the path, decoded: escapedPath had it routed as it was sent.
func param(r *http.Request, name string) (string, error) {
	v, err := url.PathUnescape(chi.URLParam(r, name))
	if err != nil {
		return "", notFound.problem("There is nothing at %s.", cutShort(r.URL.Path))
	}
	return v, nil
}

func writeJSON(w http.ResponseWriter, status int, media string, v any) {
	w.Header().Set("Content-Type", media)
	w.WriteHeader(status)
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false) // it is no HTML, and commands are full of && and <
	e.Encode(v)            // the client is gone if this is an error
}

func answer(w http.ResponseWriter, status int, v any) error {
	writeJSON(w, status, "application/json", v)
	return nil
}

// stamp writes an instant, "" for none.
func stamp(at job.Micros) string {
	if at == 0 {
		return ""
	}
	return at.String()
}
