package node

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"go-crontab/execute"
	"go-crontab/job"
	"go-crontab/schedule/edit"
	"go-crontab/sql"
)

// Attempt describes an attempt to its handler.
type Attempt = execute.Attempt

// Handler is a Go function that does the work of a job. If the function returns an error or
// panics, the run fails. The stack of a panic becomes the run's output. ctx ends at a timeout, a
// kill or a lost lease, and the function must return soon afterwards. It cannot be killed: its run
// is executing until it returns.
type Handler = execute.Handler

// Errors of changes for callers to check, in addition to job.Problems, job.ErrChanged and
// job.ErrKeyReused.
var (
	ErrNotFound = sql.ErrNotFound
	ErrExists   = sql.ErrExists
)

// Migrate creates or upgrades the tables of a cluster. Several calls may run at once. A node never
// migrates by itself.
func Migrate(ctx context.Context, dsn string) error {
	db, err := sql.Open(dsn, sql.MigrateTimeouts, 2)
	if err != nil {
		return err
	}
	defer db.Close()
	_, _, err = db.Migrate(ctx)
	return err
}

// Handle makes f the handler of jobs that name key. Call it before Run, because a session publishes
// its handlers once. A key consists of letters and digits, with _ . - / between them. Handle panics
// if the key is invalid or taken, or if the node is running: these are mistakes in the program.
func (n *Node) Handle(key string, f Handler) {
	if err := job.CheckHandlerKey(key); err != nil {
		panic(fmt.Sprintf("handler key %v", err))
	}
	if n.started.Load() {
		panic(fmt.Sprintf("handler %q: the node is already running; call Handle before Run", key))
	}
	n.cfg.Handlers.Register(key, f)
}

// JSON makes a handler of a function whose payload is decoded. If the payload of a run is not JSON
// of that type, the run fails.
func JSON[T any](f func(ctx context.Context, payload T, a Attempt) error) Handler {
	return func(ctx context.Context, a Attempt) error {
		var v T
		if len(a.Payload) > 0 {
			if err := json.Unmarshal(a.Payload, &v); err != nil {
				return fmt.Errorf("payload: %w", err)
			}
		}
		return f(ctx, v, a)
	}
}

// Name returns the name of the node.
func (n *Node) Name() string { return n.cfg.Name }

// Ready returns the reason why the node is not ready to change and start jobs, or nil.
func (n *Node) Ready() error {
	l := n.life.Load()
	if l == nil {
		return n.notJoined()
	}
	return l.notReady()
}

// notJoined returns the reason why the node has no session. The reason must not contain the
// address of MySQL, because probes show it without a token.
func (n *Node) notJoined() error {
	var cert *tls.CertificateVerificationError
	switch why := n.waitsFor.Load(); {
	case why == nil && n.outage.On():
		return errors.New("MySQL does not respond")
	case why == nil:
		return errors.New("the node is starting, or joins again")
	case sql.IsDown(*why):
		return errors.New("MySQL does not respond")
	case sql.IsRefused(*why), errors.As(*why, &cert):
		return errors.New("the node cannot use MySQL; its log says why") // MySQL's own text names the user and the host
	default:
		return *why
	}
}

// readyLook is the pause between checks for a session.
const readyLook = 20 * time.Millisecond

// AwaitReady returns once the node has a session. If ctx or the node ends first, it returns an
// error.
func (n *Node) AwaitReady(ctx context.Context) error {
	_, err := n.awaitEditor(ctx)
	return err
}

func (n *Node) awaitEditor(ctx context.Context) (*edit.Editor, error) {
	for {
		if e := n.Editor(); e != nil {
			return e, nil
		}

		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: %w", n.whyNot(), context.Cause(ctx))
		case <-n.over:
			return nil, ErrStopped
		case <-time.After(readyLook):
		}
	}
}

func (n *Node) whyNot() error {
	if !n.started.Load() {
		return errors.New("the node is not running; call Run")
	}
	if err := n.Ready(); err != nil {
		return err
	}
	return errors.New("the node has just become ready")
}
