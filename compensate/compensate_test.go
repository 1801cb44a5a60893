package compensate

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"go-crontab/internal/loop"
	"go-crontab/lock"
	"go-crontab/sql"
	"go-crontab/sql/trip"
	"go-crontab/test/faultproxy"
	"go-crontab/test/legal"
	"go-crontab/test/testdb"
)

type seven struct{}

func (seven) Number() trip.Owner { return 7 }

// set has every third run.
type set struct{}

func (set) Has(l trip.Launch) bool { return l.Run%3 == 1 }

// TestCompensate: of the executing rows of this session, the ones in no set become idle; all other
// rows stay.
func TestCompensate(t *testing.T) {
	t.Parallel()
	db, err := sql.Open(testdb.DSN(t), sql.DefaultTimeouts, 4)
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { db.Close() })
	if _, _, err := db.Migrate(context.Background()); err != nil {
		t.Fatal(err)
	}

	const all = 1200 // more than two pages
	for i := range all {
		owner := 7
		if i%3 == 2 {
			owner = 8
		}

		statement := fmt.Sprintf(`
			INSERT INTO run (id, job_id, app_id, due, kind, state, owner, claim, due_now, hash)
			VALUES (%d, %d, 1, 5, 'schedule', 'executing', %d, 1, %d, %d)`,
			i+1, i+1, owner, i/100, i%7)

		if _, err := db.Raw().Exec(statement); err != nil {
			t.Fatal(err)
		}
	}

	legal.Watch(t, db)

	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	c := New(Config{
		DB: db, Exclusion: lock.New(db, lock.Unmeasured{}, log), Session: seven{}, Executing: set{}, Log: log,
	})

	for _, want := range []int{all / 3, 0} {
		if n, err := c.Compensate(t.Context()); err != nil || n != want {
			t.Errorf("released %d, %v, want %d", n, err, want)
		}
	}

	for query, want := range map[string]int{
		"state = 'idle' AND owner = 0 AND id % 3 = 2":      all / 3,
		"state = 'executing' AND owner = 7 AND id % 3 = 1": all / 3,
		"state = 'executing' AND owner = 8 AND id % 3 = 0": all / 3,
	} {
		var n int
		if err := db.Raw().QueryRow("SELECT COUNT(*) FROM run WHERE " + query).Scan(&n); err != nil || n != want {
			t.Errorf("%s: got %d rows, %v, want %d", query, n, err, want)
		}
	}
}

// TestCompensateComesBack: the commit of a release is refused once and lost once. The run is idle
// long before the next regular comparison.
func TestCompensateComesBack(t *testing.T) {
	t.Parallel()
	dsn := testdb.DSN(t)
	proxy := faultproxy.Before(t, dsn)
	db, err := sql.Open(proxy.DSN(dsn), sql.DefaultTimeouts, 4)
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { db.Close() })
	if _, _, err := db.Migrate(context.Background()); err != nil {
		t.Fatal(err)
	}

	_, err = db.Raw().Exec(`
		INSERT INTO run (id, job_id, app_id, due, kind, state, owner, claim, due_now, hash)
		VALUES (2, 1, 1, 5, 'schedule', 'executing', 7, 1, 5, 0)`)
	if err != nil {
		t.Fatal(err)
	}

	const faults = 4
	release := faultproxy.CommitOf("UPDATE run")
	proxy.Add(faultproxy.Rule{Match: release, Action: faultproxy.Error(1213, "40001", "Deadlock found"), Times: faults / 2})
	proxy.Add(faultproxy.Rule{Match: release, Action: faultproxy.CutBefore(), Times: faults / 2})

	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	c := New(Config{
		DB: db, Exclusion: lock.New(db, lock.Unmeasured{}, log), Session: seven{}, Executing: set{}, Log: log,
		Wake: loop.NewWake(),
	})

	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- c.Run(ctx) }()
	defer func() { cancel(); <-ended }()

	c.Wake.Up()
	begun := time.Now()
	for idle := 0; idle == 0; time.Sleep(50 * time.Millisecond) {
		if err := db.Raw().QueryRow("SELECT COUNT(*) FROM run WHERE state = 'idle'").Scan(&idle); err != nil {
			t.Fatal(err)
		}
		if time.Since(begun) > faults*period {
			t.Fatalf("not released after %s", time.Since(begun))
		}
	}

	if took := time.Since(begun); took > 2*period {
		t.Errorf("released after %s, want about %s for each fault", took, again)
	}
}
