package cli

import (
	"io"
	"log/slog"
	"os"

	"go-crontab/api"
	"go-crontab/internal/journal"
	"go-crontab/internal/logqueue"

	"github.com/lmittmann/tint"
	"github.com/spf13/pflag"
)

// logging are the settings of a process's log.
type logging struct {
	level, format string
	live          *api.LogLevel // level of the logger; it can be changed at runtime
}

func (l *logging) flags(flags *pflag.FlagSet) {
	choiceVar(flags, &l.level, "log-level", "", "info", "lowest level to log", "debug", "info", "warn", "error")
	choiceVar(flags, &l.format, "log-format", "", "auto", "log format, where auto is text on a terminal and else json", "auto",
		"text", "json")
}

// logger returns a logger that writes to w.
func (l *logging) logger(w io.Writer) *slog.Logger {
	var usual slog.Level
	_ = usual.UnmarshalText([]byte(l.level)) // always one of four valid words
	l.live = api.NewLogLevel(usual)
	level := l.live
	_, tty := terminal(w)
	handler := func(w io.Writer) slog.Handler {
		return slog.NewJSONHandler(w, &slog.HandlerOptions{Level: level, ReplaceAttr: withUnit})
	}
	if l.format == "text" || l.format == "auto" && tty {
		coloured := colourful(w)
		handler = func(w io.Writer) slog.Handler { return textHandler(w, level, coloured) }
	}

	target := w
	queue, queued := w.(*logqueue.Writer)
	if queued {
		target = queue.Target()
	}
	if file, ok := target.(*os.File); ok && journal.Reads(file) {
		plain := handler
		handler = func(w io.Writer) slog.Handler { return journal.New(w, plain) }
	}
	if queued {
		queue.Notice = logqueue.Notice(handler)
	}
	return slog.New(handler(w))
}

// withUnit formats durations as "1.5s" instead of nanoseconds.
func withUnit(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		a.Value = slog.StringValue(a.Value.Duration().String())
	}
	return a
}

func textHandler(w io.Writer, level slog.Leveler, coloured bool) slog.Handler {
	return tint.NewTextHandler(w, &tint.Options{Level: level, TimeFormat: "15:04:05.000", NoColor: !coloured})
}
