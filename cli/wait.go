package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
)

// waitFlags are --wait and --wait-timeout.
type waitFlags struct {
	wait    bool
	timeout time.Duration
}

// flags adds --wait, with its help text, and --wait-timeout.
func (w *waitFlags) flags(cmd *cobra.Command, help string) {
	cmd.Flags().BoolVarP(&w.wait, "wait", "w", false, help)
	durationVar(cmd.Flags(), &w.timeout, "wait-timeout", 0,
		fmt.Sprintf("with --wait: give up after this long, with exit code %d (default never)", exitTimedOut))
}

func (w *waitFlags) check() error {
	switch {
	case w.timeout < 0:
		return usageError("--wait-timeout %s: want a duration above 0", w.timeout)
	case w.timeout > 0 && !w.wait:
		return usageError("--wait-timeout needs --wait")
	}
	return nil
}

// errWaited is the cause of a context that --wait-timeout has ended.
var errWaited = errors.New("--wait-timeout has passed")

// bounded returns a context that ends after --wait-timeout.
func (w *waitFlags) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if w.timeout == 0 {
		return ctx, func() {}
	}
	return context.WithTimeoutCause(ctx, w.timeout, errWaited)
}

// gaveUp replaces the error of a wait that --wait-timeout has ended. The new error says what is
// still going on, and how to see it. ctx is the context of the wait. Other errors stay unchanged.
func (w *waitFlags) gaveUp(ctx context.Context, err error, what, hint string) error {
	if err == nil || context.Cause(ctx) != errWaited {
		return err
	}
	return &exitError{code: exitTimedOut, err: fmt.Errorf("%s after %s", what, w.timeout), hint: hint}
}
