// Package journal gives lines of a log their priority in systemd's journal.
package journal

import (
	"context"
	"io"
	"log/slog"
)

// Handler prefixes each line with its syslog priority. The journal removes the prefix and stores
// the priority, so journalctl -p warning finds warnings and errors.
type Handler struct {
	warn, err, info, debug slog.Handler
}

// New returns a handler that writes to w. It calls handler once for each priority, with a writer that
// adds the prefix to each line.
func New(w io.Writer, handler func(io.Writer) slog.Handler) slog.Handler {
	at := func(priority string) slog.Handler { return handler(prefixed{w, priority}) }
	return Handler{err: at("<3>"), warn: at("<4>"), info: at("<6>"), debug: at("<7>")}
}

// Unwrap returns a handler that formats the lines, so that a caller can look at its type. Do not
// log with it: all its lines would get the prefix of Info.
func (h Handler) Unwrap() slog.Handler { return h.info }

// of returns the handler of a level.
func (h Handler) of(level slog.Level) slog.Handler {
	switch {
	case level >= slog.LevelError:
		return h.err
	case level >= slog.LevelWarn:
		return h.warn
	case level >= slog.LevelInfo:
		return h.info
	}
	return h.debug
}

// Enabled reports whether a level is logged.
func (h Handler) Enabled(ctx context.Context, level slog.Level) bool {
	return h.of(level).Enabled(ctx, level)
}

// Handle logs a record.
func (h Handler) Handle(ctx context.Context, r slog.Record) error {
	return h.of(r.Level).Handle(ctx, r)
}

// WithAttrs adds attributes to all lines.
func (h Handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return h.each(func(one slog.Handler) slog.Handler { return one.WithAttrs(attrs) })
}

// WithGroup opens a group in all lines.
func (h Handler) WithGroup(name string) slog.Handler {
	return h.each(func(one slog.Handler) slog.Handler { return one.WithGroup(name) })
}

func (h Handler) each(change func(slog.Handler) slog.Handler) slog.Handler {
	return Handler{
		err:   change(h.err),
		warn:  change(h.warn),
		info:  change(h.info),
		debug: change(h.debug),
	}
}

// prefixed writes lines, each with a prefix.
type prefixed struct {
	w      io.Writer
	prefix string
}

// Write writes one line.
func (p prefixed) Write(line []byte) (int, error) {
	_, err := p.w.Write(append([]byte(p.prefix), line...))
	return len(line), err
}
