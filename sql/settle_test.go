package sql

import (
	"testing"

	"go-crontab/job"
	"go-crontab/test/faultproxy"
)

// TestAudited: a line exists, does not exist, or is a different line with the same id. Asking for a
// missing line takes its id, once, with a line that says so, and removes nothing: nodes may only
// insert into the audit.
func TestAudited(t *testing.T) {
	f := setUp(t)
	line := job.Entry{
		At: 1_800_000_000_000_000, Actor: job.Actor{Who: "anna"}, Action: job.ActionPause, Kind: job.KindJob, Ref: 7,
	}
	err := f.db.Tx(t.Context(), func(tx *Tx) (err error) {
		line.ID, err = tx.InsertAudit(&line)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}

	absent, other := line, line
	absent.ID += 1000
	other.At++
	for _, c := range []struct {
		name string
		line *job.Entry
		want bool
		void int64 // lines of changes that were not made
	}{
		{"there", &line, true, 0}, {"another one with its id", &other, false, 0},
		{"never written", &job.Entry{}, false, 0},
		{"not there", &absent, false, 1}, {"not there, asked again", &absent, false, 1},
	} {
		name := c.name
		got := !c.want
		err := f.db.Tx(t.Context(), func(tx *Tx) (err error) {
			got, err = tx.Audited(c.line)
			return err
		})
		if err != nil || got != c.want {
			t.Errorf("%s: got %t, %v; want %t", name, got, err, c.want)
		}

		if n := f.number("SELECT COUNT(*) FROM audit"); n != 1+c.void {
			t.Fatalf("%s: %d lines of the audit, want the one that was written and %d", name, n, c.void)
		}
		if n := f.number(`
			SELECT COUNT(*)
			FROM audit
			WHERE id = ? AND who = 'anna' AND action = 'void' AND reason LIKE '%(pause)%not applied'`,
			absent.ID); n != c.void {
			t.Fatalf("%s: %d lines say that the change was not made, want %d", name, n, c.void)
		}
	}

	if n := f.number("SELECT COUNT(*) FROM audit WHERE id = ? AND who = 'anna' AND ref = 7", line.ID); n != 1 {
		t.Error("the line that was written is another one now")
	}
}

// TestSettledTwice: the read of a settling transaction counts only once its own commit is known,
// because its write refuses a commit that still arrives.
func TestSettledTwice(t *testing.T) {
	f := setUp(t)
	db, proxy := f.behind(2)
	for _, statement := range []string{`INSERT INTO setting`, `UPDATE locks`} { // each fails once
		proxy.Add(faultproxy.Rule{Match: faultproxy.CommitOf(statement), Action: faultproxy.CutAfter()})
	}

	ran, settled := 0, 0
	err := db.TxSettled(t.Context(), func(tx *Tx) error {
		ran++
		_, err := tx.Exec("write", `
			INSERT INTO setting (name, value)
			VALUES ('tried', ?)
			ON DUPLICATE KEY UPDATE value = VALUES(value)`, ran)
		return err
	}, func(tx *Tx) (bool, error) {
		settled++
		return false, tx.TakeLocks([]LockID{LockSessions}) // as if nothing had been written
	})
	if err != nil || ran != 2 || settled != 2 {
		t.Errorf("got %v, ran %d times, settled %d times; want it settled twice and run twice", err, ran, settled)
	}
}
