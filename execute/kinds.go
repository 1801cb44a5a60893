package execute

import (
	"context"
	"errors"
	"syscall"

	"github.com/google/uuid"

	"go-crontab/job"
)

// Kinds executes each attempt with the executor of its kind. If an executor is nil, this node cannot execute that kind.
type Kinds struct {
	Command Executor
	HTTP    Executor
	Handler Executor

	Stored Stored // the cluster's secrets; nil: it has none
}

// Execute passes the attempt to the executor of its kind.
func (k *Kinds) Execute(ctx context.Context, a Attempt) job.Result {
	e, kind := k.of(a)
	if e == nil {
		return failed(job.ReasonExecutorMissing, errors.New("this node does not run "+kind))
	}
	if res, ok := a.learnPast(ctx); !ok {
		return res
	}
	if uses := a.uses(); len(uses) > 0 {
		return k.withSecrets(ctx, e, a, uses)
	}
	return e.Execute(ctx, a)
}

func (k *Kinds) of(a Attempt) (e Executor, kind string) {
	switch {
	case a.HTTP != nil:
		return k.HTTP, "HTTP requests"
	case a.Handler != "":
		return k.Handler, "handlers"
	case a.Command != "":
		return k.Command, "commands"
	}
	return nil, "it: the definition has neither a command, http nor a handler"
}

// KillAll calls KillAll of every executor that has this method (see [Shell.KillAll]). Attempts of other executors stop
// when their contexts end.
func (k *Kinds) KillAll(sig syscall.Signal, cause error) (n int) {
	for _, e := range k.all() {
		if killer, ok := e.(interface {
			KillAll(syscall.Signal, error) int
		}); ok {
			n += killer.KillAll(sig, cause)
		}
	}
	return n
}

// Close calls Close of every executor that has this method (see [HTTP.Close]).
func (k *Kinds) Close() {
	for _, e := range k.all() {
		if c, ok := e.(interface{ Close() }); ok {
			c.Close()
		}
	}
}

// Cgroups calls Cgroups of the executor for commands (see [Shell.Cgroups]); "" if it has no such method.
func (k *Kinds) Cgroups(session uuid.UUID) string {
	if c, ok := k.Command.(interface{ Cgroups(uuid.UUID) string }); ok {
		return c.Cgroups(session)
	}
	return ""
}

// Refuses returns why this node would refuse all runs of a definition, or nil: the node has no
// such user, or does not connect to the address. Host names are not looked up, because they may
// get other addresses later.
func (k *Kinds) Refuses(spec *job.Spec) (err error) {
	if s, ok := k.Command.(*Shell); ok && spec.Command != "" {
		_, err = s.account(spec.User)
	}
	if h, ok := k.HTTP.(*HTTP); ok && spec.HTTP != nil {
		err = h.refuses(spec.HTTP.URL)
	}
	return err
}

func (k *Kinds) all() []Executor { return []Executor{k.Command, k.HTTP, k.Handler} }
