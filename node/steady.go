package node

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"
)

const (
	// repeatAfter is the time for which the repetition of a loop's warning is suppressed. While
	// MySQL is away every loop fails several times a second, and that would drown the important
	// lines.
	repeatAfter = 30 * time.Second
	// maxRecent bounds the remembered warnings.
	maxRecent = 200
)

// counters are the attributes that a repeated warning may have. A warning with any other attribute,
// such as the id of a run, is specific, and is never suppressed.
var counters = []string{"error", "in", "again_in", "lease_age", "runs", "waiting"}

// steady is a log handler that suppresses repeated warnings: the same message with the same error.
// The next such warning counts the suppressed ones in "repeated". It only ever suppresses warnings
// with an error.
type steady struct {
	slog.Handler
	recent *recentWarnings
}

// recentWarnings holds the recent warnings.
type recentWarnings struct {
	mu    sync.Mutex
	lines map[[2]string]recentWarning // by message and error
}

type recentWarning struct {
	at         time.Time
	suppressed int // suppressed since then
}

// plain returns the handler inside a steady one.
func plain(h slog.Handler) slog.Handler {
	if s, ok := h.(steady); ok {
		return s.Handler
	}
	return h
}

func newSteady(h slog.Handler) slog.Handler {
	return steady{h, &recentWarnings{lines: map[[2]string]recentWarning{}}}
}

// Handle logs the record or suppresses it.
func (s steady) Handle(ctx context.Context, r slog.Record) error {
	cause, repeats := "", r.Level == slog.LevelWarn
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "error" {
			cause = a.Value.String()
		}
		repeats = repeats && slices.Contains(counters, a.Key)
		return repeats
	})

	if !repeats || cause == "" {
		return s.Handler.Handle(ctx, r)
	}

	suppressed, now := s.recent.admit(r.Message, cause, r.Time)
	if !now {
		return nil
	}

	if suppressed > 0 {
		r = r.Clone()
		r.AddAttrs(slog.Int("repeated", suppressed))
	}

	return s.Handler.Handle(ctx, r)
}

// admit reports whether a warning must be logged now, and the number of its repetitions suppressed
// since the last time.
func (b *recentWarnings) admit(message, cause string, at time.Time) (suppressed int, now bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	key := [2]string{message, cause}
	line, known := b.lines[key]
	if known && at.Sub(line.at) < repeatAfter {
		line.suppressed++
		b.lines[key] = line
		return 0, false
	}

	if len(b.lines) >= maxRecent {
		clear(b.lines)
	}

	b.lines[key] = recentWarning{at: at}
	return line.suppressed, true
}

// WithAttrs returns a handler with separate memory: its attributes make the lines different.
func (s steady) WithAttrs(attrs []slog.Attr) slog.Handler {
	return newSteady(s.Handler.WithAttrs(attrs))
}

// WithGroup is like WithAttrs.
func (s steady) WithGroup(name string) slog.Handler { return newSteady(s.Handler.WithGroup(name)) }
