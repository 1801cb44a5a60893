package api_test

import (
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"go-crontab/api"
)

// TestLogLevelGoesBack: the usual level returns after the given time, unless the level was changed
// again.
func TestLogLevelGoesBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := api.NewLogLevel(slog.LevelInfo)
		want := func(at string, level slog.Level) {
			t.Helper()
			synctest.Wait()
			if l.Level() != level {
				t.Errorf("%s: got %s, want %s", at, l.Level(), level)
			}
		}

		want("at first", slog.LevelInfo)
		l.Change(slog.LevelDebug, 10*time.Minute)
		time.Sleep(9 * time.Minute)
		want("meanwhile", slog.LevelDebug)
		l.Change(slog.LevelDebug, 10*time.Minute)
		time.Sleep(9 * time.Minute)
		want("asked for again", slog.LevelDebug)
		time.Sleep(time.Minute)
		want("when it is over", slog.LevelInfo)
		l.Change(slog.LevelDebug, time.Minute)
		l.Change(slog.LevelError, 0)
		time.Sleep(time.Hour)
		want("changed for good since", slog.LevelError)
		l.Change(slog.LevelInfo, time.Minute)
		time.Sleep(time.Hour)
		want("the usual one", slog.LevelInfo)
	})
}

func TestLogLevel(t *testing.T) {
	t.Parallel()
	l := api.NewLogLevel(slog.LevelInfo)
	s := start(t, func(c *api.Config) { c.LogLevel = l })
	const path = "/api/v1/log-level"
	if got := s.call("GET", path, nil).want(200).object(); got.text("level") != "info" ||
		got.text("node") != "knoten-1" {
		t.Errorf("got %v", got)
	}

	if got := s.call("PUT", path,
		`{"level": "debug", "for": "10m"}`).want(200).object(); got.text("level") != "debug" ||
		got.text("until") == "" || l.Level() != slog.LevelDebug {
		t.Errorf("got %v, %s", got, l.Level())
	}

	if got := s.count(`
			SELECT COUNT(*)
			FROM audit
			WHERE kind = 'node' AND name = 'knoten-1' AND action = 'update' AND reason = 'log level debug for 10m'`); got != 1 {
		t.Errorf("%d lines of the audit, want 1", got)
	}

	for body, field := range map[string]string{`{}`: "level", `{"level": "loud"}`: "level",
		`{"level": "info", "for": "-1s"}`: "for", `{"level": "info", "for": "8761h"}`: "for",
		`{"level": "info", "x": 1}`: "x"} {
		s.call("PUT", path, body).want(422)
		if l.Level() != slog.LevelDebug {
			t.Fatalf("%s changed the level, though %s is wrong", body, field)
		}
	}

	plain := start(t, nil)
	plain.call("GET", path, nil).want(404)
	plain.call("PUT", path, `{"level": "debug"}`).want(404)
}
