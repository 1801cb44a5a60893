package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"go-crontab/execute"
	"go-crontab/internal/alert"
	"go-crontab/internal/audit"
	"go-crontab/internal/metric"
	"go-crontab/internal/secret"
	"go-crontab/job"
	"go-crontab/lock"
	"go-crontab/result"
	"go-crontab/schedule/edit"
	"go-crontab/session"
	"go-crontab/sql"
	"go-crontab/sql/read"

	"github.com/google/uuid"
)

// Node is one member of a cluster.
type Node struct {
	cfg     Config
	timings session.Timings
	log     *slog.Logger

	db        *sql.DB // for the trip, and for the secrets of starting runs
	api       *sql.DB // for people, so that a flood of requests cannot starve starts
	alerts    *sql.DB // for alerts
	outside   *alert.Outside
	pulse     *sql.Pulse
	clock     *session.Clock
	outage    *session.Outage
	exclusion *lock.Exclusion
	live      *result.Live
	parts     *result.Parts
	figures   *result.Figures
	spool     *result.Spool
	executor  execute.Executor
	metrics   *metric.Metrics

	auditLog audit.Sink // nil: none

	watermark *watermark

	mu        sync.Mutex
	recorders []*result.Recorder // of this session, and of earlier ones that have unwritten ends

	life     atomic.Pointer[life]
	waitsFor atomic.Pointer[error] // why the node cannot use MySQL yet; nil: it can
	started  atomic.Bool
	over     chan struct{} // closed when Run has returned
}

// Pool sizes. The pool for runs serves up to four start transactions, a dozen loops and the secret
// reader. It has fewer connections than users, but their statements rarely overlap. Overlapping
// statements wait.
const (
	tripPool = 8
	apiPool  = 8
	// Alerts have their own pool, so a flood of alerts cannot delay runs or API requests.
	alertPool = 3
)

// New prepares a node; it does not connect.
func New(cfg Config) (*Node, error) {
	if err := cfg.defaults(); err != nil {
		return nil, err
	}

	t, err := session.NewTimings(cfg.Expiry)
	if err != nil {
		return nil, err
	}

	n := &Node{
		cfg:      cfg,
		timings:  t,
		log:      slog.New(newSteady(cfg.Log.Handler())),
		clock:    session.NewClock(),
		executor: cfg.Executor,
		over:     make(chan struct{}),
	}

	n.outage = session.NewOutage(n.log)
	n.watermark = loadWatermark(cfg.SpoolDir)
	if n.db, err = sql.Open(cfg.DSN, t.SQL, tripPool); err != nil {
		return nil, err
	}
	if n.api, err = sql.Open(cfg.DSN, t.SQL, apiPool); err != nil {
		return nil, err
	}

	if n.executor == nil {
		if n.executor, err = newExecutor(&cfg, secret.NewReader(n.db, cfg.SecretKeys)); err != nil {
			return nil, err
		}
	}

	if n.alerts, err = sql.Open(cfg.DSN, t.SQL, alertPool); err != nil {
		return nil, err
	}
	if n.outside, err = newOutside(&cfg, secret.NewReader(n.alerts, cfg.SecretKeys)); err != nil {
		return nil, err
	}
	if n.pulse, err = sql.OpenPulse(cfg.DSN, t.SQL); err != nil {
		return nil, err
	}

	n.newMetrics()
	n.exclusion = lock.New(n.db, n.metrics, n.log)
	n.live = result.NewLive(n.db, n.log)
	n.parts = result.NewParts(n.api, n.log)
	n.figures = result.NewFigures(n.api, n.clock.Now, n.log)
	if cfg.AuditLog != "" {
		if n.auditLog, err = audit.OpenSink(cfg.AuditLog); err != nil {
			return nil, err
		}
	}

	// Keep this last: the spool stays locked until Run returns, so after a later error here it
	// would stay locked.
	if cfg.SpoolDir != "" {
		if n.spool, err = result.OpenSpool(cfg.SpoolDir); err != nil {
			return nil, err
		}
	}

	return n, nil
}

// ErrStopped is the cause with which commands are killed at the end of a drain's grace.
var ErrStopped = errors.New("the node was stopped")

// Run runs the node. It waits for a MySQL that is not up yet, and returns an error only if an
// operator must act (sql.ErrRefuseJoin). When ctx ends it drains: it claims no more runs, releases
// its prepared runs, waits for its commands up to the grace, writes every outcome, and returns nil.
// A node runs only once.
func (n *Node) Run(ctx context.Context) error { return n.RunUntil(ctx, context.Background()) }

// RunUntil is like Run, but when hard ends, the drain stops waiting.
func (n *Node) RunUntil(ctx, hard context.Context) error {
	if n.started.Swap(true) {
		return errors.New("the node has already run; create a new one")
	}

	defer close(n.over)
	defer n.close()
	go job.ZoneData() // this takes a while, and the data are needed once there is a session
	if err := n.firstReading(ctx); err != nil {
		return unlessDone(ctx, err)
	}

	recording, stop := context.WithCancel(context.Background())
	var retiring sync.WaitGroup
	retiring.Go(func() { n.live.Run(recording) })
	retiring.Go(func() { n.figures.Run(recording) })
	if n.auditLog != nil {
		// The node does not wait for the end of the copier, because the file system may hang. The
		// next process continues from the saved position.
		copier := audit.NewCopier(audit.CopierConfig{
			DB:      n.api,
			Sink:    n.auditLog,
			Dir:     n.cfg.SpoolDir,
			Metrics: n.metrics,
			Log:     n.log,
		})
		go copier.Run(recording)
	}

	defer func() {
		n.closeParts(hard)
		stop()
		retiring.Wait()
		n.save()
	}()

	n.warnUnguarded()

	replayed := false
	var earlier []uuid.UUID
	for ctx.Err() == nil {
		if err := n.watermark.failed(); err != nil {
			return err
		}

		wake := newWakes()
		g, err := n.newGuard(wake)
		if err != nil {
			return fmt.Errorf("%w; to run without a guard, set Config.NoGuard (serve --no-guard)", err)
		}

		s, err := session.Register(ctx, n.db, n.clock, n.timings, session.Identity{
			Node:      n.cfg.Name,
			Address:   n.cfg.Address,
			PID:       syscall.Getpid(),
			Version:   n.cfg.Version,
			Slots:     n.cfg.Slots,
			Earlier:   earlier,
			Labels:    n.labels(),
			Handlers:  n.cfg.Handlers.Keys(),
			Zones:     job.ZoneData(),
			ZonesFrom: session.ZonesFrom(),
		}, n.log)
		if err != nil {
			return unlessDone(ctx, err)
		}

		earlier = append(earlier, s.ID())
		l := n.newLife(s, g, wake)
		if err := l.protect(); err != nil {
			return err
		}

		n.life.Store(l)
		if !replayed {
			replayed = true
			retiring.Go(func() { n.replay(recording, s) })
		}

		n.outage.End()
		n.log.Info("joined the cluster", "session", s.ID(), "node", n.cfg.Name)
		l.run(ctx, hard)
		n.life.Store(nil)
		if s.Lost() {
			n.metrics.SessionLost()
			// The old session is retired while the next session works. That may take as long as
			// MySQL does not answer.
			retiring.Go(func() { l.retire(recording) })
		}
	}

	return nil
}

func unlessDone(ctx context.Context, err error) error {
	if ctx.Err() != nil && !errors.Is(err, sql.ErrRefuseJoin) {
		return nil
	}
	return err
}

// firstReading waits until MySQL can be used. It checks the watermark, and reads MySQL's clock for
// the first time.
func (n *Node) firstReading(ctx context.Context) error {
	for pause := 100 * time.Millisecond; ; pause = min(2*pause, 2*time.Second) {
		err := n.db.Check(ctx)
		if err == nil {
			err = n.checkWatermark(ctx)
		}
		if err == nil {
			err = session.ReadClock(ctx, n.pulse, n.clock)
		}
		if err == nil || errors.Is(err, sql.ErrRefuseJoin) {
			n.waitsFor.Store(nil)
			return err
		}

		n.waitsFor.Store(&err)
		n.log.Warn("MySQL is not ready for this node yet, trying again", "error", err, "in", pause)
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(pause):
		}
	}
}

func (n *Node) close() {
	n.db.Close()
	n.api.Close()
	n.alerts.Close()
	n.outside.Close()
	n.pulse.Close()
	if n.spool != nil {
		n.spool.Close()
	}
	if k, ok := n.executor.(*execute.Kinds); ok {
		k.Close()
	}
}

// Status is a node's view of itself.
type Status struct {
	Session   string
	Node      string
	Ready     bool
	LeaseAge  time.Duration
	Lead      time.Duration
	Prepared  int
	Executing int
	Slots     int
	Taken     int // slots in use; an HTTP request takes a sixteenth
	Waiting   int // outcomes that are not written yet
	Guard     int // process id of the guard; 0: none
}

// Status returns the present state of the node.
func (n *Node) Status() Status {
	st := Status{Node: n.cfg.Name, Slots: n.cfg.Slots, Waiting: n.unwritten()}
	if l := n.life.Load(); l != nil {
		st.Session, st.LeaseAge, st.Lead = l.session.ID().String(), l.session.Age(), l.starter.Lead()
		st.Ready = l.notReady() == nil
		if l.guard != nil {
			st.Guard = l.guard.PID()
		}
		st.Prepared, st.Executing, st.Taken = l.prepared.Len(), l.executing.Len(), l.executing.Taken()
	}

	return st
}

// Editor returns the editor of jobs, or nil while the node has no fresh session.
func (n *Node) Editor() *edit.Editor {
	if l := n.life.Load(); l != nil && l.session.Fresh() {
		return l.editor
	}
	return nil
}

// Now returns the time of MySQL's clock; it is meaningless before the first reading.
func (n *Node) Now() time.Time { return n.clock.Now().Time() }

// Reads returns the pool for requests of people.
func (n *Node) Reads() *read.DB { return n.reads() }

func (n *Node) reads() *read.DB        { return &read.DB{DB: n.api} }
func (n *Node) alertReads() read.Watch { return read.Watch{DB: &read.DB{DB: n.alerts}} }
