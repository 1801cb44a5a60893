package trip_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"go-crontab/sql"
	"go-crontab/sql/trip"
	"go-crontab/test/testdb"
)

// TestOwners: Owners finds all sessions that hold runs, and reads a few index entries for each.
func TestOwners(t *testing.T) {
	t.Parallel()
	db, err := sql.Open(testdb.DSN(t), sql.DefaultTimeouts, 1) // one connection, because the counter of reads belongs to it
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, _, err := db.Migrate(context.Background()); err != nil {
		t.Fatal(err)
	}
	var rows []string
	for i := range 3000 {
		rows = append(rows, fmt.Sprintf("(%d, %d, 1, 5, 'schedule', 'prepared', %d, 1, %d, 0)", i+1, i+1, []int{3, 8, 11}[i%3], i))
	}
	rows = append(rows, "(4001, 4001, 1, 5, 'manual', 'idle', 0, 0, 5, 0)")
	if _, err := db.Raw().Exec("INSERT INTO run (id, job_id, app_id, due, kind, state, owner, claim, due_now, hash) VALUES " + strings.Join(rows, ",")); err != nil {
		t.Fatal(err)
	}

	before := testdb.Reads(t, db.Raw())
	got, err := trip.Owners(db.Reader(t.Context()))
	if want := []trip.Owner{3, 8, 11}; err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
	if n := testdb.Reads(t, db.Raw()) - before; n > 100 {
		t.Errorf("it read %d rows and entries", n)
	}
}
