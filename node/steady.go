package node

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"
)

const (
	// sameAgain is how long a warning of a loop that tries again is not said once more in the same
	// words. While MySQL is away every loop fails several times a second, and what one has to know
	// drowns in that.
	sameAgain = 30 * time.Second
	// manySaid bounds the warnings that are remembered.
	manySaid = 200
)

// counters are what such a warning has beside its error. One with anything else, as the id of a
// run, is about that one thing, and is always said.
var counters = []string{"error", "in", "again_in", "lease_age", "runs", "waiting"}

// steady is a handler of a log that holds back warnings that repeat each other: the same message
// with the same error. It says how many it held back with the next one. Nothing but warnings with
// an error is ever held back.
type steady struct {
	slog.Handler
	said *saidBefore
}

// saidBefore is what was said lately.
type saidBefore struct {
	mu    sync.Mutex
	lines map[[2]string]saidLine // by message and error
}

type saidLine struct {
	at   time.Time
	held int // since then
}

// plain is the handler behind a steady one.
func plain(h slog.Handler) slog.Handler {
	if s, ok := h.(steady); ok {
		return s.Handler
	}
	return h
}

func newSteady(h slog.Handler) slog.Handler {
	return steady{h, &saidBefore{lines: map[[2]string]saidLine{}}}
}

// Handle says the record, or holds it back.
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

	held, now := s.said.again(r.Message, cause, r.Time)
	if !now {
		return nil
	}

	if held > 0 {
		r = r.Clone()
		r.AddAttrs(slog.Int("repeated", held))
	}

	return s.Handler.Handle(ctx, r)
}

// again tells whether a line is to be said at an instant, and how often it was not since it was
// said last.
func (b *saidBefore) again(message, cause string, at time.Time) (held int, now bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	key := [2]string{message, cause}
	line, known := b.lines[key]
	if known && at.Sub(line.at) < sameAgain {
		line.held++
		b.lines[key] = line
		return 0, false
	}

	if len(b.lines) >= manySaid {
		clear(b.lines)
	}

	b.lines[key] = saidLine{at: at}
	return line.held, true
}

// WithAttrs remembers apart from the others: these attributes say what the lines are about.
func (s steady) WithAttrs(attrs []slog.Attr) slog.Handler {
	return newSteady(s.Handler.WithAttrs(attrs))
}

// WithGroup is as WithAttrs.
func (s steady) WithGroup(name string) slog.Handler { return newSteady(s.Handler.WithGroup(name)) }
