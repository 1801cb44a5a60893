package secret

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"go-crontab/internal/audit"
	"go-crontab/job"
	"go-crontab/sql"
	"go-crontab/test/testdb"
)

func open(t *testing.T) *sql.DB {
	t.Helper()
	return openAt(t, testdb.DSN(t))
}

// openAt migrates a schema and opens it.
func openAt(t *testing.T, dsn string) *sql.DB {
	t.Helper()
	migrator, err := sql.Open(dsn, sql.MigrateTimeouts, 2)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := migrator.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}

	migrator.Close()
	db, err := sql.Open(dsn, sql.DefaultTimeouts, 8)
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { db.Close() })
	return db
}

func ofAll(name job.Secret) job.AppSecret { return job.AppSecret{Name: name} }

// put sets a secret of an app.
func put(t *testing.T, s *Store, name job.Secret, app, value string) {
	t.Helper()
	if _, err := s.Put(t.Context(), New{job.AppSecret{App: app, Name: name}, value}); err != nil {
		t.Fatal(err)
	}
}

// read returns the value of a secret for an app, without a reader's cache. It returns "" if there
// is no such secret.
func read(t *testing.T, s *Store, app string, name job.Secret) (string, error) {
	t.Helper()
	values, err := NewReader(s.DB, s.Keys).Values(t.Context(), app, []job.Secret{name})
	return values[name], err
}

func TestStore(t *testing.T) {
	t.Parallel()
	s := &Store{DB: open(t), Keys: ring(t, NewKey())}
	ctx := job.WithActor(t.Context(), job.Actor{Who: "alice", Origin: "here"})
	for i, value := range []string{"first", "other", strings.Repeat("x", job.MaxSecret)} {
		isNew, err := s.Put(ctx, New{ofAll("pg"), value})
		if err != nil || isNew != (i == 0) {
			t.Fatalf("got %v, %v", isNew, err)
		}
		if got, err := read(t, s, "any", "pg"); err != nil || got != value {
			t.Errorf("got %.20q, %v", got, err)
		}
	}

	put(t, s, "pg", "shop", "of shop")
	put(t, s, "pg", "alpha", "of alpha")
	for app, want := range map[string]string{"shop": "of shop", "alpha": "of alpha",
		"billing": strings.Repeat("x", job.MaxSecret)} {
		if got, err := read(t, s, app, "pg"); err != nil || got != want {
			t.Errorf("%s: got %.20q, %v", app, got, err)
		}
	}

	if _, err := (&Store{DB: s.DB}).Put(ctx, New{ofAll("pg"), "sixth"}); !errors.Is(err, ErrNoKey) {
		t.Errorf("without a key: got %v", err)
	}

	shops := job.AppSecret{App: "shop", Name: "pg"}
	if err := s.Delete(ctx, shops); err != nil {
		t.Fatal(err)
	}
	if err := s.Delete(ctx, shops); !errors.Is(err, sql.ErrNotFound) {
		t.Errorf("got %v", err)
	}
	if got, err := read(t, s, "shop", "pg"); err != nil || !strings.HasPrefix(got, "xxx") {
		t.Errorf("without its own: got %.20q, %v, want that of all apps", got, err)
	}

	if got, err := read(t, s, "alpha", "pg"); err != nil || got != "of alpha" {
		t.Errorf("got %.20q, %v", got, err)
	}

	page, err := audit.List(s.DB.Reader(ctx), audit.Filter{Kind: job.KindSecret, Limit: 100})
	var lines []string
	for _, l := range page.Lines {
		lines = append(lines, fmt.Sprintf("%s %s %s %s %q %q %q", l.Who, l.Action, l.Name, l.App, l.Reason, l.Was,
			l.Became))
	}

	want := `alice delete pg shop "" "" ""` + "\n"
	if got := strings.Join(lines, "\n"); err != nil || !strings.HasPrefix(got, want) || len(lines) != 6 {
		t.Errorf("the audit: got %v\n%s", err, got)
	}
}

// TestChannelsUseSecretsOfAllApps checks that a channel's secret cannot be deleted, even if an app
// has a secret of the same name.
func TestChannelsUseSecretsOfAllApps(t *testing.T) {
	t.Parallel()
	s := &Store{DB: open(t), Keys: ring(t, NewKey())}
	put(t, s, "hook", "", "first")
	put(t, s, "hook", "shop", "second")
	if _, err := s.DB.Raw().Exec(
		`INSERT INTO alert_channel (name, spec, created, updated)
		VALUES ('chat', '{"type": "slack", "url": "{{secret.hook}}"}', 1, 1)`); err != nil {
		t.Fatal(err)
	}

	if got, err := read(t, s, "", "hook"); err != nil || got != "first" {
		t.Errorf("got %q, %v", got, err)
	}

	var used *job.InUse
	if err := s.Delete(t.Context(), ofAll("hook")); !errors.As(err, &used) || used.By[0].Name != "chat" {
		t.Errorf("got %v, want that the channel uses it", err)
	}
	if err := s.Delete(t.Context(), job.AppSecret{App: "shop", Name: "hook"}); err != nil {
		t.Errorf("that of the shop: %v", err)
	}
}

// TestRowsAreNotSwapped has an attacker with write access give a row to another app, and to another
// name.
func TestRowsAreNotSwapped(t *testing.T) {
	t.Parallel()
	s := &Store{DB: open(t), Keys: ring(t, NewKey())}
	put(t, s, "pg", "beta", "of beta")
	for _, change := range []string{"app = 'alpha'", "app = ''", "app = 'beta', name = 'other'"} {
		if _, err := s.DB.Raw().Exec("UPDATE secret SET " + change); err != nil {
			t.Fatal(err)
		}
		for _, name := range []job.Secret{"pg", "other"} {
			for _, app := range []string{"alpha", "beta"} {
				if got, _ := read(t, s, app, name); got != "" {
					t.Errorf("%s: %s of %s is %q", change, name, app, got)
				}
			}
		}
	}
}

// TestPutAtOnce has many requests set the same new secret: one creates it, and the final value is
// one of theirs.
func TestPutAtOnce(t *testing.T) {
	t.Parallel()
	s := &Store{DB: open(t), Keys: ring(t, NewKey())}
	var wg sync.WaitGroup
	var mu sync.Mutex
	made := 0
	for i := range 8 {
		wg.Go(func() {
			isNew, err := s.Put(t.Context(), New{ofAll("pg"), fmt.Sprint("value", i)})
			mu.Lock()
			defer mu.Unlock()
			if isNew {
				made++
			}
			if err != nil {
				t.Error(err)
			}
		})
	}

	wg.Wait()
	if got, err := read(t, s, "", "pg"); err != nil || !strings.HasPrefix(got, "value") || made != 1 {
		t.Errorf("got %q, %v, made %d times", got, err, made)
	}
}

func TestRotate(t *testing.T) {
	t.Parallel()
	oldKey, newKey, lost := NewKey(), NewKey(), NewKey()
	before := &Store{DB: open(t), Keys: ring(t, oldKey)}
	const n = 2*rotateAtOnce + 3
	for i := range n {
		put(t, before, job.Secret(fmt.Sprintf("s%02d", i)), "", fmt.Sprintf("value %d", i))
	}

	put(t, &Store{DB: before.DB, Keys: ring(t, lost)}, "lost", "", "value")
	after := &Store{DB: before.DB, Keys: ring(t, newKey, oldKey)}
	for i, want := range []int{n, 0} {
		got, err := after.Rotate(t.Context())
		if err != nil || got.Rotated != want || got.Key != after.Keys.IDs()[0] || len(got.Failed) != 1 ||
			got.Failed[0].Name != "lost" {
			t.Errorf("rotation %d: got %+v, %v, want %d", i, got, err, want)
		}
	}

	alone := &Store{DB: before.DB, Keys: ring(t, newKey)}
	for i := range n {
		if got, err := read(t, alone, "", job.Secret(fmt.Sprintf("s%02d", i))); err != nil ||
			got != fmt.Sprintf("value %d", i) {
			t.Errorf("s%02d: got %q, %v", i, got, err)
		}
	}

	if got, err := read(t, before, "", "s00"); err == nil ||
		!strings.Contains(err.Error(), "secret s00: it is sealed with the key "+after.Keys.IDs()[0]) {
		t.Errorf("with the old key: got %q, %v", got, err)
	}

	if _, err := (&Store{DB: before.DB}).Rotate(t.Context()); !errors.Is(err, ErrNoKey) {
		t.Errorf("got %v", err)
	}
}

// TestReaderForgets checks that a cached row expires, and that a database out of reach has an error
// of its own.
func TestReaderForgets(t *testing.T) {
	t.Parallel()
	s := &Store{DB: open(t), Keys: ring(t, NewKey())}
	r := NewReader(s.DB, s.Keys)
	now := time.Now()
	look := func(after time.Duration) int {
		t.Helper()
		rows, err := r.rows(t.Context(), wanted("", []job.Secret{"pg", "none"}), now.Add(after))
		if err != nil {
			t.Fatal(err)
		}
		return len(rows)
	}

	for i, want := range []struct {
		after time.Duration
		rows  int
	}{{0, 0}, {MaxAge, 0}, {MaxAge + 1, 1}, {MaxAge + 2, 1}} {
		if i == 1 {
			put(t, s, "pg", "", "value")
		}
		if got := look(want.after); got != want.rows {
			t.Errorf("after %s: got %d, want %d", want.after, got, want.rows)
		}
	}

	away, err := sql.Open("nobody@tcp(127.0.0.1:1)/nowhere", sql.DefaultTimeouts, 1)
	if err != nil {
		t.Fatal(err)
	}

	defer away.Close()
	var temporary interface{ Temporary() bool }
	if _, err := NewReader(away, nil).Values(context.Background(), "", []job.Secret{"pg"}); !errors.As(err, &temporary) {
		t.Errorf("got %v", err)
	}
}
