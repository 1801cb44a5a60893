package cli

import (
	"errors"
	"fmt"

	"go-crontab/sql"
)

// Exit codes, see the package comment.
const (
	exitOK = iota
	exitFailed
	exitUsage
	exitNotFound
	exitRefused
	exitUnauthorized

	exitTimedOut = 124 // as timeout(1) has it
)

// exitError ends the program with a code other than exitFailed. hint says what to try next.
type exitError struct {
	code int
	err  error
	hint string
}

func (e *exitError) Error() string { return e.err.Error() }
func (e *exitError) Unwrap() error { return e.err }

func usageError(format string, args ...any) error {
	return &exitError{code: exitUsage, err: fmt.Errorf(format, args...)}
}

// withHint adds a hint to an error that has none, and keeps its exit code.
func withHint(err error, format string, args ...any) error {
	if err == nil || hintOf(err) != "" {
		return err
	}
	return &exitError{code: codeOf(err), err: err, hint: fmt.Sprintf(format, args...)}
}

func hintOf(err error) string {
	if e := (*exitError)(nil); errors.As(err, &e) {
		return e.hint
	}
	return ""
}

func codeOf(err error) int {
	e := (*exitError)(nil)
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &e):
		return e.code
	case errors.Is(err, sql.ErrRefuseJoin):
		return exitRefused
	}
	return exitFailed
}

func notFound(what, name string) error { return fmt.Errorf("there is no %s %q", what, name) }
