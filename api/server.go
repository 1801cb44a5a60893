package api

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"go-crontab/api/view"
	"go-crontab/internal/alert"
	"go-crontab/internal/auth"
	"go-crontab/internal/doctor"
	"go-crontab/internal/feed"
	"go-crontab/internal/secret"
	"go-crontab/job"
	"go-crontab/schedule/edit"
	"go-crontab/sql/read"
	"go-crontab/sql/trip"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"
)

// Editor changes jobs. It is an *edit.Editor; tests replace it.
type Editor interface {
	Create(ctx context.Context, spec job.Spec, paused bool) (edit.Done, error)
	// Update returns job.ErrChanged if people have changed the job more often than the number
	// changes says.
	Update(ctx context.Context, id int64, changes int32, spec job.Spec) (edit.Done, error)
	// UpdateAnd is like Update. In the same transaction it pauses or resumes the job.
	UpdateAnd(ctx context.Context, id int64, changes int32, spec job.Spec, paused bool) (edit.Done, error)
	// Rollback is like Update, with the definition of an earlier version of the job.
	Rollback(ctx context.Context, id int64, changes int32, spec job.Spec, earlier int32) (edit.Done, error)
	Pause(ctx context.Context, id int64, p job.PauseRequest) (edit.Done, error)
	Resume(ctx context.Context, id int64) (edit.Done, error)
	Delete(ctx context.Context, id int64) (edit.Done, error)
	// Bulk makes one kind of change to several jobs, and reports each result in want.Done.
	Bulk(ctx context.Context, want *job.Bulk) error
	// Apply makes all wanted changes or none. job.Conflicts lists the objects whose version is not
	// the wanted one.
	Apply(ctx context.Context, want job.Apply) (job.Applied, error)
	// RunWith adds a run to each job, with values of its parameters. A due time of zero means now.
	RunWith(
		ctx context.Context, jobs []int64, due job.Micros, params map[string]job.Value, key string,
	) (edit.Asked, error)
	// Rerun adds a run to each due time in the past. It calls then in its transaction.
	Rerun(ctx context.Context, past []edit.Past, then func(edit.Asked)) (edit.Asked, error)
	Kill(ctx context.Context, l job.Launch) error
	Backfill(ctx context.Context, id int64, want edit.Range, key string) (trip.BackfillRow, error)
	CancelBackfill(ctx context.Context, id int64) (trip.BackfillRow, error)

	// PutCalendar reports whether the calendar is new. version is the expected version: 0 for any,
	// -1 if the calendar must not exist yet.
	PutCalendar(ctx context.Context, spec job.CalendarSpec, version int64) (isNew bool, err error)
	DeleteCalendar(ctx context.Context, name string) error // *job.InUse while jobs name it
	PutGroup(ctx context.Context, want job.GroupSpec) (trip.Group, error)
	DeleteGroup(ctx context.Context, name string) error // *job.InUse while jobs refer to it

	// PauseApp, ResumeApp and PutRetention concern the whole cluster when app is "".
	PauseApp(ctx context.Context, app string, p job.PauseRequest) (job.Pause, error)
	ResumeApp(ctx context.Context, app string) error
	PutRetention(ctx context.Context, app string, r job.Retention) error
	PutLimits(ctx context.Context, app string, l job.AppLimits) error
	DeleteLimits(ctx context.Context, app string) error

	Cordon(ctx context.Context, node, reason string, drain bool) error
	Uncordon(ctx context.Context, node string) error
	DisableHandler(ctx context.Context, key, reason string) error
	EnableHandler(ctx context.Context, key string) error
}

// Config configures a Server. DB, Editor, Now and Ready are required.
type Config struct {
	DB     *read.DB         // for reading
	Editor func() Editor    // returns nil while the node may not change anything
	Now    func() time.Time // MySQL's clock; zero before its first reading
	Ready  func() error     // why the node is not ready, or nil

	Machine func() *doctor.Machine // facts about the node's machine; nil: they are omitted

	Refuses func(*job.Spec) error // why the node would refuse all runs of a definition; nil: unknown

	Alerts Alerter // sends test messages to channels; nil: this node sends none

	SecretKeys *secret.Ring // seals secrets; nil: secrets can only be listed and deleted

	Node    string
	Version string
	Listen  string   // host:port at which the node listens: a Host header may name it
	Hosts   []string // more host names, without ports, that a Host header may name
	Log     *slog.Logger

	TLS       *tls.Config   // with a certificate; nil: plain HTTP
	PublicURL string        // where browsers reach the cluster; "": at Listen
	OIDC      *auth.OIDC    // the identity provider for signing in, or nil
	LoginLife time.Duration // the longest life of a browser's login; zero: DefaultLoginLife
	Rate      int           // requests a second per token; zero: DefaultRate, negative: unlimited

	LogLevel *LogLevel // of Log; nil: it cannot be changed

	Metrics     http.Handler                    // serves GET /metrics; may be nil
	OpenMetrics bool                            // serve metrics without a token
	Observe     Observer                        // counts requests; may be nil
	Traced      func(http.Handler) http.Handler // wraps the handlers, see package trace; may be nil
}

// Defaults.
const (
	DefaultLoginLife = 12 * time.Hour
	DefaultRate      = 200
)

// Server serves the HTTP API of a node.
type Server struct {
	cfg     Config
	hosts   hosts
	public  *url.URL // may be nil
	gate    *auth.Gate
	issuer  auth.Issuer
	secrets *secret.Store
	alerts  *alert.Store
	rate    *auth.Limiter // of requests; nil: unlimited
	streams *streams
	feed    *feed.Feed
	failing *failing
	fared   keptBy[*view.JobStats]
	flows   auth.Strangers // sign-ins that strangers start at the provider
	signIns auth.Limiter   // by token or person, see limitKey
	ahead   chan struct{}  // the request that computes due times of many jobs holds it
	handler http.Handler

	requestIDs *requestIDs

	reference func() (*reference, error) // built on first use
}

// New makes a server.
func New(cfg Config) *Server {
	if cfg.Log == nil {
		cfg.Log = slog.Default()
	}
	if cfg.DB == nil {
		cfg.DB = &read.DB{} // enough to build the reference
	}
	if cfg.LoginLife == 0 {
		cfg.LoginLife = DefaultLoginLife
	}
	if cfg.Rate == 0 {
		cfg.Rate = DefaultRate
	}

	s := &Server{
		cfg: cfg, gate: auth.NewGate(cfg.DB.DB, cfg.Log), issuer: issuerOf(&cfg),
		secrets: &secret.Store{DB: cfg.DB.DB, Keys: cfg.SecretKeys}, alerts: &alert.Store{DB: cfg.DB.DB},
		flows: auth.Strangers{
			Each: auth.Limiter{Every: 2 * time.Second, Burst: 20},
			Rest: auth.Limiter{Every: 100 * time.Millisecond, Burst: 20},
		},
		signIns: auth.Limiter{Every: time.Second, Burst: 20},
	}

	if u, err := url.Parse(cfg.PublicURL); err == nil && u.Host != "" {
		s.public = u
		cfg.Hosts = append(slices.Clone(cfg.Hosts), u.Host)
	}

	if cfg.Rate > 0 {
		s.rate = &auth.Limiter{Every: time.Second / time.Duration(cfg.Rate), Burst: burst * cfg.Rate}
	}

	// The handlers refer to s, so the routes come last.
	s.hosts = newHosts(cfg.Listen, cfg.Hosts)
	s.reference = sync.OnceValues(func() (*reference, error) { return newReference(s.table(), apiVersion) })
	s.requestIDs = newRequestIDs()
	s.streams, s.ahead = newStreams(), make(chan struct{}, 1)
	s.failing = newFailing()
	s.feed = feed.New(cfg.DB, func() job.Micros { return job.MicrosOf(cfg.Now()) }, encodeEvent, cfg.Log)
	s.handler = s.routes()
	return s
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.handler.ServeHTTP(w, r) }

// Limits of a connection. A change may wait for a spawn window and for a database failover.
// requestTimeout is long enough for both. writeTimeout leaves time to write the answer afterwards.
const (
	headerTimeout   = 5 * time.Second
	readTimeout     = 15 * time.Second
	requestTimeout  = 20 * time.Second
	writeTimeout    = 30 * time.Second
	idleTimeout     = 60 * time.Second
	shutdownTimeout = 5 * time.Second
	maxHeader       = 16 << 10
	maxConnections  = 128
	maxStreams      = 32 // concurrent requests on an HTTP/2 connection
)

const (
	burst = 5 // how many seconds' worth of its rate a token may use at once
	// longestDelay is the longest delay of a request above the rate. A request that would have to
	// wait longer is refused.
	longestDelay = 300 * time.Millisecond
)

// Serve answers the connections of a listener until ctx ends, and closes the listener. Open
// requests then get shutdownTimeout (5 s) to end.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	server := &http.Server{
		Handler:           s,
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeader,
		HTTP2:             &http.HTTP2Config{MaxConcurrentStreams: maxStreams},
		TLSConfig:         s.cfg.TLS,
	}

	server.RegisterOnShutdown(s.Close) // streams do not end by themselves
	defer s.feed.Close()
	defer s.startChecks(ctx)()

	return s.serveBounded(ctx, server, l, maxConnections)
}

// serveBounded answers at most most connections of a listener at a time, until ctx ends.
func (s *Server) serveBounded(ctx context.Context, server *http.Server, l net.Listener, most int) error {
	server.ErrorLog = slog.NewLogLogger(s.cfg.Log.Handler(), slog.LevelDebug)
	server.ConnState, server.ConnContext = connState, connContext

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

	l = limitConnections(l, most)
	serve := server.Serve
	if server.TLSConfig != nil {
		serve = func(l net.Listener) error { return server.ServeTLS(l, "", "") }
	}

	err := serve(l)
	if stop() { // it ended by itself
		return err
	}
	return <-stopped
}

// handler answers one request, or returns the error to answer with.
type handler func(w http.ResponseWriter, r *http.Request) error

// routes returns the router for the table.
func (s *Server) routes() http.Handler {
	m := chi.NewRouter()
	if s.cfg.Traced != nil {
		m.Use(s.cfg.Traced)
	}

	m.Use(s.requestID, s.logRequest, s.recoverPanic, protect, withActor, s.checkHost, s.checkOrigin, deadline,
		escapedPath, middleware.GetHead, compressed)

	// Only callers who may see what exists learn what does not exist.
	m.NotFound(s.orScreen(s.serve(s.guard(may(viewer, shared), noRoute))))
	m.MethodNotAllowed(s.serve(s.guard(may(viewer, shared), wrongMethod(m))))

	for _, rt := range s.table() {
		once := s.once(rt.doc, rt.handler)
		h := withQuery(rt.query(), withPreconditions(rt.doc, withBoundedBody(rt.doc, once)))
		m.Method(rt.method, rt.pattern, s.serve(s.guard(rt.may, h)))
	}

	return m
}

// table lists the routes and who may use them. The operation of a route, in reference_*.go,
// describes the route's input and answers. A query parameter that it does not name is refused. A
// test fails for a route without an operation.
func (s *Server) table() []route {
	return []route{
		{"GET", "/", open, s.home, &homeDoc},
		{"GET", "/assets/{file}", open, s.asset, &assetDoc},
		{"GET", "/healthz", open, s.healthz, &healthzDoc},
		{"GET", "/readyz", open, s.readyz, &readyzDoc},
		{"GET", "/metrics", s.mayScrape(), s.metrics, &metricsDoc},
		{"GET", "/openapi.json", open, s.openapiJSON, &openapiJSONDoc},
		{"GET", "/openapi.yaml", open, s.openapiYAML, &openapiYAMLDoc},
		{"GET", "/docs", open, s.referencePage, &referencePageDoc},
		{"GET", "/docs/{file}", open, s.referenceFile, &referenceFileDoc},

		{"POST", "/api/v1/jobs", may(admin, inBody), s.createJob, &createJobDoc},
		{"GET", "/api/v1/jobs", may(viewer, filtered), s.listJobs, &listJobsDoc},
		{"GET", "/api/v1/jobs/{id}", may(viewer, ofJob), s.getJob, &getJobDoc},
		{"PUT", "/api/v1/jobs/{id}", may(admin, ofJob), s.putJob, &putJobDoc},
		{"PATCH", "/api/v1/jobs/{id}", may(admin, ofJob), s.patchJob, &patchJobDoc},
		{"DELETE", "/api/v1/jobs/{id}", may(admin, ofJob), s.deleteJob, &deleteJobDoc},
		{"GET", "/api/v1/apps/{app}/jobs/{name}", may(viewer, ofApp), s.getJobNamed, &getJobNamedDoc},
		{"PUT", "/api/v1/apps/{app}/jobs/{name}", may(admin, ofApp), s.putJobNamed, &putJobNamedDoc},
		{"POST", "/api/v1/jobs/{id}/pause", may(operator, ofJob), s.pauseJob, &pauseJobDoc},
		{"POST", "/api/v1/jobs/{id}/resume", may(operator, ofJob), s.resumeJob, &resumeJobDoc},
		{"POST", "/api/v1/jobs/{id}/run", may(operator, ofJob), s.runJob, &runJobDoc},
		{"GET", "/api/v1/jobs/{id}/next", may(viewer, ofJob), s.nextDue, &nextDueDoc},
		{"GET", "/api/v1/jobs/{id}/explain", may(viewer, ofJob), s.explain, &explainDoc},
		{"GET", "/api/v1/jobs/{id}/history", may(viewer, ofJobsPast), s.history, &historyDoc},

		{"GET", "/api/v1/jobs/{id}/versions", may(viewer, ofJobsPast), s.listVersions, &listVersionsDoc},
		{"GET", "/api/v1/jobs/{id}/versions/{version}", may(viewer, ofJobsPast), s.getVersion, &getVersionDoc},
		{"GET", "/api/v1/jobs/{id}/versions/{version}/diff/{other}", may(viewer, ofJobsPast),
			s.diffVersions, &diffVersionsDoc},
		{"POST", "/api/v1/jobs/{id}/rollback", may(admin, ofJob), s.rollback, &rollbackDoc},

		{"POST", "/api/v1/bulk/pause", may(operator, filtered), s.bulkPause, &bulkPauseDoc},
		{"POST", "/api/v1/bulk/resume", may(operator, filtered), s.bulkResume, &bulkResumeDoc},
		{"POST", "/api/v1/bulk/run", may(operator, filtered), s.bulkRun, &bulkRunDoc},
		{"POST", "/api/v1/bulk/delete", may(admin, filtered), s.bulkDelete, &bulkDeleteDoc},

		{"POST", "/api/v1/bulk/rerun", may(operator, filtered), s.bulkRerun, &rerunDoc},

		{"POST", "/api/v1/apply", may(admin, inBody), s.apply, &applyDoc},
		{"GET", "/api/v1/export", may(viewer, filtered), s.export, &exportDoc},
		{"POST", "/api/v1/crontab", may(viewer, shared), s.readCrontab, &crontabDoc},
		{"GET", "/schema/manifest.json", open, s.manifestSchema, &manifestSchemaDoc},

		{"GET", "/api/v1/runs", may(viewer, filtered), s.listRuns, &listRunsDoc},
		{"GET", "/api/v1/runs/{id}", may(viewer, ofRun), s.getRun, &getRunDoc},
		{"GET", "/api/v1/runs/{id}/output", may(viewer, ofRun), s.getOutput, &outputDoc},

		{"POST", "/api/v1/runs/{id}/kill", may(operator, ofRun), s.killRun, &killRunDoc},

		{"POST", "/api/v1/jobs/{id}/backfill", may(operator, ofJob), s.startBackfill, &startBackfillDoc},
		{"GET", "/api/v1/backfills", may(viewer, filtered), s.listBackfills, &listBackfillsDoc},
		{"GET", "/api/v1/backfills/{id}", may(viewer, ofBackfill), s.getBackfill, &getBackfillDoc},
		{"GET", "/api/v1/backfills/{id}/dues", may(viewer, ofBackfill), s.listBackfillDues, &backfillDuesDoc},
		{"POST", "/api/v1/backfills/{id}/cancel", may(operator, ofBackfill), s.cancelBackfill, &cancelBackfillDoc},

		{"GET", "/api/v1/groups", may(viewer, shared), s.listGroups, &listGroupsDoc},
		{"GET", "/api/v1/groups/{name}", may(viewer, shared), s.getGroup, &getGroupDoc},
		{"PUT", "/api/v1/groups/{name}", may(admin, whole), s.putGroup, &putGroupDoc},
		{"DELETE", "/api/v1/groups/{name}", may(admin, whole), s.deleteGroup, &deleteGroupDoc},

		{"GET", "/api/v1/calendars", may(viewer, shared), s.listCalendars, &listCalendarsDoc},
		{"POST", "/api/v1/calendars", may(admin, whole), s.createCalendar, &createCalendarDoc},
		{"GET", "/api/v1/calendars/{name}", may(viewer, shared), s.getCalendar, &getCalendarDoc},
		{"PUT", "/api/v1/calendars/{name}", may(admin, whole), s.putCalendar, &putCalendarDoc},
		{"DELETE", "/api/v1/calendars/{name}", may(admin, whole), s.deleteCalendar, &deleteCalendarDoc},
		{"POST", "/api/v1/calendars/{name}/import", may(admin, whole), s.importCalendar, &importCalendarDoc},
		{"GET", "/api/v1/calendars/{name}/days", may(viewer, shared), s.calendarDays, &calendarDaysDoc},

		{"GET", "/api/v1/nodes", may(viewer, shared), s.listNodes, &listNodesDoc},
		{"GET", "/api/v1/nodes/{name}", may(viewer, shared), s.getNode, &getNodeDoc},
		{"POST", "/api/v1/nodes/{name}/cordon", may(operator, whole), s.cordonNode, &cordonNodeDoc},
		{"POST", "/api/v1/nodes/{name}/uncordon", may(operator, whole), s.uncordonNode, &uncordonNodeDoc},
		{"POST", "/api/v1/nodes/{name}/drain", may(operator, whole), s.drainNode, &drainNodeDoc},

		{"GET", "/api/v1/handlers", may(viewer, filtered), s.listHandlers, &listHandlersDoc},
		{"POST", "/api/v1/handlers/{key}/disable", may(operator, whole), s.disableHandler, &disableHandlerDoc},
		{"POST", "/api/v1/handlers/{key}/enable", may(operator, whole), s.enableHandler, &enableHandlerDoc},

		{"GET", "/api/v1/upcoming", may(viewer, filtered), s.upcoming, &upcomingDoc},
		{"GET", "/api/v1/upcoming/counts", may(viewer, filtered), s.countUpcoming, &countUpcomingDoc},
		{"GET", "/api/v1/upcoming.ics", may(viewer, filtered).orPassword(), s.upcomingFeed, &feedDoc},

		{"GET", "/api/v1/log-level", may(viewer, shared), s.getLogLevel, &getLogLevelDoc},
		{"PUT", "/api/v1/log-level", may(admin, whole), s.putLogLevel, &putLogLevelDoc},

		{"POST", "/api/v1/preview", may(viewer, shared), s.preview, &previewDoc},
		{"GET", "/api/v1/cluster", may(viewer, shared), s.cluster, &clusterDoc},
		{"GET", "/api/v1/retention", may(viewer, filtered), s.listRetention, &listRetentionDoc},
		{"PUT", "/api/v1/cluster/backup", may(operator, whole), s.putBackup, &putBackupDoc},
		{"PUT", "/api/v1/cluster/retention", may(admin, whole), s.putRetention, &putRetentionDoc},
		{"PUT", "/api/v1/apps/{app}/retention", may(admin, ofApp), s.putRetention, &putAppRetentionDoc},
		{"GET", "/api/v1/limits", may(viewer, filtered), s.listLimits, &listLimitsDoc},
		{"GET", "/api/v1/apps/{app}/limits", may(viewer, ofApp), s.getLimits, &getLimitsDoc},
		{"PUT", "/api/v1/apps/{app}/limits", may(admin, whole), s.putLimits, &putLimitsDoc},
		{"DELETE", "/api/v1/apps/{app}/limits", may(admin, whole), s.deleteLimits, &deleteLimitsDoc},
		{"GET", "/api/v1/doctor", may(viewer, whole), s.examine, &doctorDoc},
		{"GET", "/api/v1/events", may(viewer, filtered), s.events, &eventsDoc},
		{"GET", "/api/v1/stats", may(viewer, shared), s.stats, &statsDoc},
		{"GET", "/api/v1/stats/counts", may(viewer, filtered), s.counts, &countsDoc},
		{"GET", "/api/v1/stats/jobs", may(viewer, filtered), s.jobStats, &jobStatsDoc},
		{"GET", "/api/v1/stats/slots", may(viewer, filtered), s.slots, &slotsDoc},
		{"POST", "/api/v1/cluster/pause", may(operator, whole), s.pauseAll, &pauseClusterDoc},
		{"POST", "/api/v1/cluster/resume", may(operator, whole), s.resumeAll, &resumeClusterDoc},
		{"GET", "/api/v1/apps", may(viewer, filtered), s.listApps, &listAppsDoc},
		{"POST", "/api/v1/apps/{app}/pause", may(operator, ofApp), s.pauseAll, &pauseAppDoc},
		{"POST", "/api/v1/apps/{app}/resume", may(operator, ofApp), s.resumeAll, &resumeAppDoc},
		{"GET", "/api/v1/pauses", may(viewer, filtered), s.listPauses, &listPausesDoc},
		{"GET", "/api/v1/audit", may(viewer, filtered), s.listAudit, &listAuditDoc},
		{"GET", "/api/v1/audit/chain", may(viewer, whole), s.verifyAudit, &verifyAuditDoc},

		{"GET", "/api/v1/me", may(viewer, shared), s.me, &meDoc},
		{"GET", "/api/v1/login", open, s.waysIn, &waysInDoc},
		{"POST", "/api/v1/login", open, s.login, &loginDoc},
		{"POST", "/api/v1/logout", may(viewer, shared), s.logout, &logoutDoc},
		{"POST", "/api/v1/login/oidc", open, s.beginOIDC, &beginOIDCDoc},
		{"GET", "/api/v1/login/oidc/callback", open, s.returnOIDC, &returnOIDCDoc},
		{"POST", "/api/v1/login/oidc/callback", open, s.endOIDC, &endOIDCDoc},
		{"GET", "/api/v1/logins", may(viewer, filtered), s.listLogins, &listLoginsDoc},
		{"DELETE", "/api/v1/logins", may(viewer, filtered), s.endLogins, &endLoginsDoc},
		{"DELETE", "/api/v1/logins/{id}", may(viewer, filtered), s.endLogin, &endLoginDoc},

		{"GET", "/api/v1/secrets", may(viewer, filtered), s.listSecrets, &listSecretsDoc},
		{"PUT", "/api/v1/secrets/{name}", may(admin, inBody), s.putSecret, &putSecretDoc},
		{"DELETE", "/api/v1/secrets/{name}", may(admin, inBody), s.deleteSecret, &deleteSecretDoc},
		{"POST", "/api/v1/secrets/rotate", may(admin, whole), s.rotateSecrets, &rotateSecretsDoc},

		{"GET", "/api/v1/alerts", may(viewer, filtered), s.listAlerts, &listAlertsDoc},
		{"GET", "/api/v1/alerts/{id}", may(viewer, filtered), s.getAlert, &getAlertDoc},
		{"GET", "/api/v1/alerts/summary", may(viewer, shared), s.alertSummary, &alertSummaryDoc},
		{"GET", "/api/v1/alerts/deliveries", may(viewer, whole), s.listDeliveries, &listDeliveriesDoc},
		{"GET", "/api/v1/alerts/rules", may(viewer, shared), s.listRules, &listRulesDoc},
		{"GET", "/api/v1/alerts/rules/{name}", may(viewer, shared), s.getRule, &getRuleDoc},
		{"PUT", "/api/v1/alerts/rules/{name}", may(admin, whole), s.putRule, &putRuleDoc},
		{"DELETE", "/api/v1/alerts/rules/{name}", may(admin, whole), s.deleteRule, &deleteRuleDoc},
		{"GET", "/api/v1/alerts/channels", may(viewer, shared), s.listChannels, &listChannelsDoc},
		{"GET", "/api/v1/alerts/channels/{name}", may(viewer, shared), s.getChannel, &getChannelDoc},
		{"PUT", "/api/v1/alerts/channels/{name}", may(admin, whole), s.putChannel, &putChannelDoc},
		{"DELETE", "/api/v1/alerts/channels/{name}", may(admin, whole), s.deleteChannel, &deleteChannelDoc},
		{"POST", "/api/v1/alerts/channels/{name}/test", may(operator, whole), s.testChannel, &testChannelDoc},
		{"POST", "/api/v1/alerts/test-channel", may(admin, whole), s.tryChannel, &tryChannelDoc},
		{"POST", "/api/v1/alerts/test-rule", may(admin, whole), s.tryRule, &tryRuleDoc},
		{"GET", "/api/v1/alerts/silences", may(viewer, filtered), s.listSilences, &listSilencesDoc},
		{"POST", "/api/v1/alerts/silences", may(operator, inBody), s.addSilence, &addSilenceDoc},
		{"GET", "/api/v1/alerts/silences/{id}", may(viewer, filtered), s.getSilence, &getSilenceDoc},
		{"DELETE", "/api/v1/alerts/silences/{id}", may(operator, inBody), s.endSilence, &endSilenceDoc},

		{"GET", "/api/v1/tokens", may(admin, whole), s.listTokens, &listTokensDoc},
		{"POST", "/api/v1/tokens", may(admin, whole), s.createToken, &createTokenDoc},
		{"GET", "/api/v1/tokens/{id}", may(admin, whole), s.getToken, &getTokenDoc},
		{"DELETE", "/api/v1/tokens/{id}", may(admin, whole), s.revokeToken, &revokeTokenDoc},
	}
}

// serve answers the error of a handler as a problem.
func (s *Server) serve(h handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := h(w, r); err != nil {
			s.noteForbidden(r, err)
			s.fail(w, r, err)
		}
	}
}

func noRoute(w http.ResponseWriter, r *http.Request) error {
	return notFound.problem("There is nothing at %s; GET /docs lists the API.", cutShort(r.URL.Path))
}

// wrongMethod answers 405 with the list of allowed methods, which a 405 must have.
func wrongMethod(routes chi.Routes) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		var allowed []string
		for _, method := range []string{"GET", "POST", "PUT", "PATCH", "DELETE"} {
			if routes.Match(chi.NewRouteContext(), method, r.URL.EscapedPath()) {
				allowed = append(allowed, method)
			}
		}

		if allowed == nil {
			return noRoute(w, r) // the router checks unusual methods before the path
		}
		if allowed[0] == "GET" {
			allowed = append(allowed, "HEAD")
		}

		list := strings.Join(allowed, ", ")
		w.Header().Set("Allow", list)
		return methodNotAllowed.problem("%s supports %s, but not %s.", cutShort(r.URL.Path), list, cutShort(r.Method))
	}
}

// param returns a decoded part of the path. The router does not decode the path: see escapedPath.
func param(r *http.Request, name string) (string, error) {
	v, err := url.PathUnescape(chi.URLParam(r, name))
	if err != nil {
		return "", notFound.problem("There is nothing at %s.", cutShort(r.URL.Path))
	}
	return v, nil
}

// pathID returns the numeric id in the path. missing makes the error for a text that cannot be an
// id.
func pathID(r *http.Request, missing func(text string) error) (int64, error) {
	text, err := param(r, "id")
	if err != nil {
		return 0, err
	}
	id, ok := idOf(text)
	if !ok {
		return 0, missing(text)
	}
	return id, nil
}

func writeJSON(w http.ResponseWriter, status int, media string, v any) {
	w.Header().Set("Content-Type", media)
	w.WriteHeader(status)
	encode(w, v)
}

func encode(w io.Writer, v any) {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false) // this is not HTML, and commands are full of && and <
	e.Encode(v)            // an error means that the client is gone
}

func answer(w http.ResponseWriter, status int, v any) error {
	writeJSON(w, status, "application/json", v)
	return nil
}

// instant returns a stored instant as a time. It returns nil for zero.
func instant(at job.Micros) *time.Time {
	if at == 0 {
		return nil
	}
	t := at.Time()
	return &t
}
