package node

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"go-crontab/internal/journal"
	"go-crontab/internal/loop"
	"go-crontab/sql"
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

// steady is a log handler that suppresses repeated warnings: the same message with the same error,
// or any message with an error that means that MySQL is away.
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
	quiet map[string]bool             // warnings of loops that were suppressed because MySQL was away
}

type recentWarning struct {
	at         time.Time
	suppressed int // suppressed since then
}

// plain returns the handler that formats the lines.
func plain(h slog.Handler) slog.Handler {
	if s, ok := h.(steady); ok {
		h = s.Handler
	}
	if j, ok := h.(journal.Handler); ok {
		h = j.Unwrap()
	}
	return h
}

func newSteady(h slog.Handler) slog.Handler {
	return steady{h, &recentWarnings{lines: map[[2]string]recentWarning{}, quiet: map[string]bool{}}}
}

// Handle logs the record or suppresses it.
func (s steady) Handle(ctx context.Context, r slog.Record) error {
	if r.Message == loop.WorksAgain && s.recent.forgets(warningOf(r)) {
		return nil
	}

	cause, repeats, away := "", r.Level == slog.LevelWarn, false
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "error" {
			cause = a.Value.String()
			err, _ := a.Value.Any().(error)
			away = sql.IsDown(err)
		}
		repeats = repeats && slices.Contains(counters, a.Key)
		return repeats
	})

	if !repeats || cause == "" {
		return s.Handler.Handle(ctx, r)
	}

	suppressed, now := s.recent.admit(r.Message, cause, away, r.Time)
	if !now {
		return nil
	}

	if suppressed > 0 {
		r = r.Clone()
		r.AddAttrs(slog.Int("repeated", suppressed))
	}

	return s.Handler.Handle(ctx, r)
}

// warningOf returns the warning of a loop that works again.
func warningOf(r slog.Record) (warning string) {
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == loop.Warning {
			warning = a.Value.String()
		}
		return warning == ""
	})
	return warning
}

// forgets reports whether a loop works again whose warning was suppressed. "MySQL back" says it all.
func (b *recentWarnings) forgets(warning string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	was := b.quiet[warning]
	delete(b.quiet, warning)
	return was
}

// admit reports whether a warning must be logged now, and the number of its repetitions suppressed
// since the last time. While MySQL is away, all loops fail: their warnings count as repetitions of
// one.
func (b *recentWarnings) admit(message, cause string, away bool, at time.Time) (suppressed int, now bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	key := [2]string{message, cause}
	if away {
		key = [2]string{"", "MySQL is away"}
		defer func() { b.quiet[message] = !now }()
	}
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
