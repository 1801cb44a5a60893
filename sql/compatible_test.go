package sql

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"
)

// TestCompatible: a program joins a newer schema if that schema lets it in.
func TestCompatible(t *testing.T) {
	f := setUp(t)
	p, err := f.db.provider(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	newest := newestMigration(p)
	f.want("what a new schema says", compatibleSince, "SELECT value FROM setting WHERE name = 'compatible_since'")
	f.exec("INSERT INTO schema_version (version_id, is_applied) VALUES (?, 1)", newest+1)
	for _, c := range []struct {
		since string
		may   bool
	}{
		{fmt.Sprint(compatibleSince), true}, {fmt.Sprint(newest), true}, {fmt.Sprint(newest + 1), false}, {"0", false},
		{"nonsense", false}, {"", false},
	} {
		f.exec("UPDATE setting SET value = ? WHERE name = 'compatible_since'", c.since)
		if err := f.db.checkSchema(t.Context()); c.may != (err == nil) || err != nil && !errors.Is(err, ErrRefuseJoin) {
			t.Errorf("compatible since %q: got %v, want joining to be %v", c.since, err, c.may)
		}
	}

	f.exec("DELETE FROM setting WHERE name = 'compatible_since'")
	if err := f.db.checkSchema(t.Context()); !errors.Is(err, ErrRefuseJoin) {
		t.Errorf("a schema that says nothing: got %v, want a refusal", err)
	}
}

// TestMayMigrate: migrate does not remove what live nodes depend on.
func TestMayMigrate(t *testing.T) {
	f := setUp(t)
	ctx := t.Context()
	may := func(what string, from, since int64, want bool) {
		t.Helper()
		err := f.db.mayMigrate(ctx, from, since)
		if want != (err == nil) ||
			err != nil && !(errors.Is(err, ErrRefuseJoin) && strings.Contains(err.Error(), "stop all nodes")) {
			t.Errorf("%s: got %v, want it allowed: %v", what, err, want)
		}
	}

	may("nobody lives", 11, 12, true)
	if err := f.db.Tx(ctx, func(tx *Tx) error {
		return errors.Join(tx.JoinExpiry(20e9, nobodyWatched), tx.InsertSession(SessionRow{ID: uuid.New(), Node: "a"}))
	}); err != nil {
		t.Fatal(err)
	}

	may("nothing is taken", 11, compatibleSince, true)
	may("nodes as old as the schema lets in may live", 11, 11, false)
	f.exec("UPDATE session SET beat_at = beat_at - 30000000")
	may("they are dead", 11, 11, true)
	f.exec("UPDATE session SET beat_at = beat_at + 30000000")
	f.exec("DELETE FROM setting WHERE name = 'compatible_since'")
	may("a schema that lets in no older ones", 11, 11, true)
	may("and a newer one", 11, 12, false)

	// It is raised, and never lowered.
	for _, since := range []int64{9, 12, 10} {
		if err := f.db.setCompatible(ctx, since); err != nil {
			t.Fatal(err)
		}
	}

	f.want("the highest stands", 12, "SELECT value FROM setting WHERE name = 'compatible_since'")
}
