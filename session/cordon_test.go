package session

import "testing"

// cordon sets the cordon of a node, as an operator would; since 0 removes it.
func (f *fixture) cordon(node string, since int64) {
	f.Helper()
	if f.exec("DELETE FROM node WHERE name = ?", node); since != 0 {
		f.exec("INSERT INTO node (name, cordoned, since) VALUES (?, 1, ?)", node, since)
	}
}

// TestCordon: a session of a cordoned node is no member, releases its prepared runs at each look,
// and publishes with a beat that it has obeyed. Later it is a member again.
func TestCordon(t *testing.T) {
	f := setUp(t)
	s := f.join("one")
	f.join("two")
	r, calls := f.reaper(s)
	around := new(surroundings)
	r.Cordon = around
	look := func() (index, of int) {
		if err := r.reap(t.Context(), at(0)); err != nil {
			t.Fatal(err)
		}
		index, of = s.Share()
		return index, of
	}

	beats := func() bool {
		select {
		case <-s.beatNow:
			return true
		default:
			return false
		}
	}

	if index, of := look(); index < 0 || of != 2 || s.Cordoned() {
		t.Fatalf("before: index %d of %d, cordoned %t", index, of, s.Cordoned())
	}

	calls.forget()
	if look(); beats() || around.obeys != 0 {
		t.Error("a look at nothing new gave back")
	}
	if len(calls.changed) != 0 {
		t.Errorf("a look at the same members told %d times of a change", len(calls.changed))
	}

	f.cordon("one", 77)
	if index, of := look(); index != -1 || of != 1 || !s.Cordoned() || around.obeys != 1 {
		t.Errorf("cordoned: index %d of %d, cordoned %t, gave back %d times", index, of, s.Cordoned(), around.obeys)
	}
	if labels := s.Peers(); len(labels) != 1 || len(calls.changed) != 1 {
		t.Errorf("cordoned: members %v, told %d times of a change; want one of them, and once", labels, len(calls.changed))
	}
	if look(); around.obeys != 2 || beats() {
		t.Errorf("gave back %d times, want at each look; it told that it has obeyed", around.obeys)
	}

	for i, want := range []bool{true, false} {
		if s.ObeysCordon() == want {
			t.Errorf("obeyed, time %d: it says that it obeys: %t, want %t", i+1, want, !want)
		}
		if s.ObeyCordon(); beats() != want {
			t.Errorf("obeyed, time %d: told %t, want %t", i+1, !want, want)
		}
	}

	h := f.heartbeat(s)
	if err := h.beat(t.Context()); err != nil {
		t.Fatal(err)
	}

	f.want("the cordon that was seen", 77, "SELECT cordon_seen FROM session WHERE id = ?", s.id[:])
	sessions, err := f.db.Sessions(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	for _, row := range sessions {
		if cordoned := row.ID == s.id; (row.Cordoned == 77 && row.CordonSeen == 77) != cordoned {
			t.Errorf("%s: %+v", row.Node, row)
		}
	}

	f.cordon("one", 99) // removed and set again between two looks
	if look(); beats() || s.ObeysCordon() {
		t.Error("told that it has obeyed before it has")
	}
	if s.ObeyCordon(); !beats() {
		t.Error("another cordon was obeyed, and it did not tell")
	}

	f.cordon("one", 0)
	calls.forget()
	if index, of := look(); index < 0 || of != 2 || s.Cordoned() || !beats() || len(calls.changed) != 1 {
		t.Errorf("uncordoned: index %d of %d, cordoned %t, changed %d times", index, of, s.Cordoned(), len(calls.changed))
	}
	if s.ObeyCordon(); beats() {
		t.Error("obeyed no cordon, and told so")
	}
	if err := h.beat(t.Context()); err != nil {
		t.Fatal(err)
	}

	f.want("the cordon that was seen", 0, "SELECT cordon_seen FROM session WHERE id = ?", s.id[:])
}

// TestACordonOutlivesSessions: a session that registers for a cordoned node knows that from the
// first instant.
func TestACordonOutlivesSessions(t *testing.T) {
	f := setUp(t)
	f.cordon("one", 77)
	f.exec("INSERT INTO node (name, cordoned, since) VALUES ('two', 0, 5)")
	if s := f.join("one"); !s.Cordoned() {
		t.Error("it does not know that its node is cordoned")
	}
	if s := f.join("two"); s.Cordoned() {
		t.Error("it takes its node for cordoned")
	}
}

// TestLabelsAreStored: peers read the labels that a node publishes.
func TestLabelsAreStored(t *testing.T) {
	f := setUp(t)
	me := Identity{
		Node: "one", Slots: 3, Labels: map[string]string{"zone": `a"b\`, "höhe": "東"},
		Handlers: []string{"mail", "a/b"}, Zones: "abc", ZonesFrom: "2025b",
	}

	s, err := Register(t.Context(), f.db, f.join("clock").Clock, f.timings, me, f.log)
	if err != nil {
		t.Fatal(err)
	}

	f.exec("UPDATE session SET labels = 'no JSON', handlers = '{}' WHERE node = 'clock'")
	sessions, err := f.db.Sessions(t.Context())
	if err != nil || len(sessions) != 2 {
		t.Fatalf("got %d sessions, %v", len(sessions), err)
	}

	for _, row := range sessions {
		all := row.AllLabels()
		want := 4
		if row.ID != s.id {
			want = 0 // written by hand
		} else if row.Zones != "abc" || row.ZonesFrom != "2025b" {
			t.Errorf("got time zone data %q from %q", row.Zones, row.ZonesFrom)
		}

		if len(all) != want {
			t.Errorf("%s: got labels %v", row.Node, all)
		}
		if _, has := all["handler/a/b"]; want > 0 && (all["zone"] != `a"b\` || all["höhe"] != "東" || !has) {
			t.Errorf("got labels %v", all)
		}
	}
}
