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
	// repeatAfter is how long repetitions of a loop's warning are suppressed. While MySQL is away,
	// every loop fails several times a second. Without this, their lines would hide the important
	// ones.
	repeatAfter = 30 * time.Second
	// maxRecent bounds the remembered warnings.
	maxRecent = 200
)

// counters are the only attributes that a suppressed warning may have. A warning with any other
// attribute, such as the id of a run, is specific, and is never suppressed.
var counters = []string{"error", "in", "again_in", "lease_age", "runs", "waiting"}

// steady is a log handler that suppresses repeated warnings, if they have an error. A warning
// repeats an earlier one if both have the same message and error, or if both errors mean that
// MySQL is away. The next warning that is logged has the number of suppressed warnings in
// "repeated".
type steady struct {
	slog.Handler
	recent *recentWarnings
}

// recentWarnings holds the recent warnings.
type recentWarnings struct {
	mu    sync.Mutex
	lines map[[2]string]recentWarning // by message and error
	quiet map[string]bool             // whether a loop's last warning was suppressed because MySQL was away
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

// warningOf returns the warning to which a line belongs: the line says that the loop of the
// warning works again.
func warningOf(r slog.Record) (warning string) {
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == loop.Warning {
			warning = a.Value.String()
		}
		return warning == ""
	})
	return warning
}

// forgets reports whether the last warning of a loop was suppressed. Then the line "works again"
// is suppressed, too, because "MySQL back" says everything.
func (b *recentWarnings) forgets(warning string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	was := b.quiet[warning]
	delete(b.quiet, warning)
	return was
}

// admit reports whether a warning must be logged now, and how many repetitions were suppressed
// since the last log line. While MySQL is away, all loops fail. Their warnings then count as
// repetitions of one warning.
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

// WithAttrs returns a handler that suppresses separately: with the attributes, its lines differ
// from those of the other handler.
func (s steady) WithAttrs(attrs []slog.Attr) slog.Handler {
	return newSteady(s.Handler.WithAttrs(attrs))
}

// WithGroup is like WithAttrs.
func (s steady) WithGroup(name string) slog.Handler { return newSteady(s.Handler.WithGroup(name)) }
