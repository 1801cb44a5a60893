package api

import (
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"go-crontab/api/view"
	"go-crontab/job"
	"go-crontab/job/problem"
	"go-crontab/sql"
)

// LogLevel is a node's log level. It is a slog.Leveler that can be changed while the node runs.
type LogLevel struct {
	slog.LevelVar

	mu    sync.Mutex
	usual slog.Level
	until time.Time // when the usual level returns, by the node's clock; zero: never
	timer *time.Timer
}

// NewLogLevel returns a LogLevel that starts at the usual level.
func NewLogLevel(usual slog.Level) *LogLevel {
	l := &LogLevel{usual: usual}
	l.Set(usual)
	return l
}

// Change sets the level for the duration d. If d is zero, the level stays until the process ends.
func (l *LogLevel) Change(level slog.Level, d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()

	if l.timer != nil {
		l.timer.Stop()
	}

	l.Set(level)
	l.until, l.timer = time.Time{}, nil
	if d > 0 && level != l.usual {
		l.until = time.Now().Add(d)
		l.timer = time.AfterFunc(d, func() { l.back(level) })
	}
}

// back restores the usual level, unless the level has been changed again.
func (l *LogLevel) back(from slog.Level) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.Level() == from && !l.until.IsZero() && !time.Now().Before(l.until) {
		l.Set(l.usual)
		l.until = time.Time{}
	}
}

// left returns the time until the usual level returns. It is zero if the present level stays.
func (l *LogLevel) left() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.until.IsZero() {
		return 0
	}
	return max(time.Until(l.until), time.Millisecond)
}

// levels are the accepted levels.
var levels = map[string]slog.Level{
	"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError,
}

// longestDebug limits the time for which a level can be set.
const longestDebug = 7 * 24 * time.Hour

// logLevelBody is the body of PUT /api/v1/log-level.
type logLevelBody struct {
	Level string       `json:"level" enum:"debug,info,warn,error" doc:"The lowest level that is logged."`
	For   job.Duration `json:"for,omitempty" doc:"How long the change lasts, at most 168h. Then the level of the node's start applies again. Without it, the change lasts until the process ends."`
}

// getLogLevel: GET /api/v1/log-level
func (s *Server) getLogLevel(w http.ResponseWriter, r *http.Request) error {
	l, err := s.logLevel()
	if err != nil {
		return err
	}
	return answer(w, http.StatusOK, s.viewLogLevel(l))
}

// putLogLevel: PUT /api/v1/log-level. It writes the audit line before it changes the level. If we
// die in between, the line names a level that was never used: the process has ended, and the next
// one starts at its usual level.
func (s *Server) putLogLevel(w http.ResponseWriter, r *http.Request) error {
	o, err := readObject(r)
	if err != nil {
		return err
	}

	var b logLevelBody
	f := newFields(o)
	f.text("level", &b.Level)
	f.duration("for", &b.For)

	level, known := levels[b.Level]
	if !known {
		f.wrong("level", problem.NotOneOf, cutShort(b.Level), "debug, info, warn, error")
	}
	if d := time.Duration(b.For); d < 0 || d > longestDebug {
		f.wrong("for", problem.NotUpTo, d, longestDebug)
	}

	if err := f.done(); err != nil {
		return err
	}

	l, err := s.logLevel()
	if err != nil {
		return err
	}

	now, err := s.now()
	if err != nil {
		return err
	}

	reason := "log level " + b.Level
	if b.For > 0 {
		reason += " for " + b.For.String()
	}

	ctx := r.Context()
	if err := s.cfg.DB.Tx(ctx, func(tx *sql.Tx) error {
		_, err := tx.InsertAudit(&job.Entry{
			At: job.MicrosOf(now), Actor: job.ActorOf(ctx), Action: job.ActionUpdate, Kind: job.KindNode,
			Name: s.cfg.Node, Reason: reason,
		})
		return err
	}); err != nil {
		return err
	}

	l.Change(level, time.Duration(b.For))
	return answer(w, http.StatusOK, s.viewLogLevel(l))
}

func (s *Server) logLevel() (*LogLevel, error) {
	if s.cfg.LogLevel == nil {
		return nil, notFound.problem("The log level of this node cannot be changed.")
	}
	return s.cfg.LogLevel, nil
}

func (s *Server) viewLogLevel(l *LogLevel) view.LogLevel {
	v := view.LogLevel{Node: s.cfg.Node, Level: strings.ToLower(l.Level().String())}
	if left := l.left(); left > 0 {
		v.Until = instant(job.MicrosOf(s.cfg.Now().Add(left)))
	}
	return v
}
