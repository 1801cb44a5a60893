package sql

import (
	"slices"
	"testing"
)

// TestExpectedTables compares the tables read from the text of the migrations with the tables that
// they create.
func TestExpectedTables(t *testing.T) {
	f := setUp(t)
	have, err := f.db.Tables(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	want, err := expectedTables()
	if err != nil {
		t.Fatal(err)
	}

	for name, h := range have {
		if name == versionTable || name == lockTable || name == stepTable {
			continue
		}

		w := want[name]
		if w == nil {
			t.Errorf("table %s: not found in the migrations", name)
			continue
		}

		slices.Sort(h.Columns)
		slices.Sort(h.Indexes)
		if !slices.Equal(h.Columns, w.Columns) {
			t.Errorf("columns of %s: got %v, want %v", name, w.Columns, h.Columns)
		}
		if !slices.Equal(h.Indexes, w.Indexes) {
			t.Errorf("indexes of %s: got %v, want %v", name, w.Indexes, h.Indexes)
		}
	}

	faults, err := f.db.SchemaFaults(t.Context(), have)
	if err != nil || faults != nil {
		t.Errorf("got %v, %v; want no fault", faults, err)
	}

	f.exec("ALTER TABLE run DROP KEY live")
	if have, err = f.db.Tables(t.Context()); err != nil {
		t.Fatal(err)
	}

	faults, err = f.db.SchemaFaults(t.Context(), have)
	if want := []string{"index live of run is missing"}; err != nil || !slices.Equal(faults, want) {
		t.Errorf("got %v, %v; want %v", faults, err, want)
	}
}
