package alert

import (
	"context"
	"testing"
	"time"

	"go-crontab/job"
	"go-crontab/test/testdb"
)

// TestLockOrder: a transaction that writes a definition waits for the rows that are locked before
// it, and meanwhile holds no row that is locked later.
func TestLockOrder(t *testing.T) {
	f := setUp(t)
	hook := job.AlertChannel{Name: "hook", Type: job.ChannelSlack, URL: "{{secret.s}}"}
	rule := job.AlertRule{Name: "ops", On: []job.AlertEvent{job.AlertFailed}, Channels: []string{"hook"}}
	f.channel(hook)
	f.rule(rule)
	hook.Timeout, rule.Severity = job.Duration(2*time.Second), "info"
	for _, c := range []struct {
		name, first, then string
		write             func(context.Context) error
	}{
		{"a rule", "SELECT id FROM alert_channel WHERE name = 'hook'", "SELECT id FROM alert_rule WHERE name = 'ops'",
			func(ctx context.Context) error {
				_, _, err := f.store().PutRule(ctx, rule)
				return err
			}},
		{"a channel", "SELECT id FROM secret WHERE name = 's'", "SELECT id FROM alert_channel WHERE name = 'hook'",
			func(ctx context.Context) error {
				_, _, err := f.store().PutChannel(ctx, hook)
				return err
			}},
	} {
		tx, err := f.own.Raw().Begin()
		if err != nil {
			t.Fatal(err)
		}
		defer tx.Rollback()
		var id int64
		if err := tx.QueryRow(c.first + " FOR UPDATE").Scan(&id); err != nil {
			t.Fatal(err)
		}

		done := make(chan error, 1)
		go func() { done <- c.write(t.Context()) }()
		f.awaitLockWait()
		if err := tx.QueryRow(c.then + " FOR UPDATE NOWAIT").Scan(&id); err != nil {
			t.Errorf("%s: it is locked already: %v", c.name, err)
		}
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
		if err := <-done; err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// awaitLockWait returns as soon as a transaction of this database waits for a lock.
func (f *fixture) awaitLockWait() {
	f.Helper()
	for end := time.Now().Add(20 * time.Second); ; {
		switch _, waiting, err := testdb.Transactions(f.own.Raw()); {
		case err != nil:
			f.Fatal(err)
		case waiting > 0:
			return
		}
		if time.Now().After(end) {
			f.Fatal("not within 20 s: a transaction that waits for a lock")
		}
		time.Sleep(120 * time.Millisecond) // the server refreshes the answer at most every 100 ms
	}
}
