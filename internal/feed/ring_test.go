package feed

import (
	"fmt"
	"testing"
	"time"
)

func TestRing(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	r := newRing()
	r.began = now
	add := func(id string, after time.Duration) { r.add(Event{ID: id, Data: []byte("{}")}, now.Add(after)) }
	for i := range 20 {
		add(fmt.Sprint("e", i), time.Duration(i)*time.Second)
	}

	place := func(id string, n int) string { return fmt.Sprintf("%s.%s-%d", id, r.epoch, n) }
	for name, c := range map[string]struct {
		after string
		want  int64
		ok    bool
	}{
		"of this life":                       {place("e7", 7), 8, true},
		"the last":                           {place("e19", 19), 20, true},
		"one that there is not yet":          {place("e20", 20), 21, false},
		"of another node":                    {"e12.abcdef01-3", 7, true},
		"of another node, and just begun":    {"e4.abcdef01-3", 0, false},
		"of another node, and never seen":    {"e99.abcdef01-3", 0, false},
		"nonsense":                           {"x-y.z", 0, false},
		"nothing":                            {"", 0, false},
		"of another node, at the very begin": {"e5.abcdef01-3", 0, true},
	} {
		got, ok := r.resumeAt(c.after)
		if ok != c.ok || ok && got != c.want {
			t.Errorf("%s: got %d, %v, want %d, %v", name, got, ok, c.want, c.ok)
		}
	}

	for i := range ringEvents {
		add(fmt.Sprint("f", i), time.Minute)
	}

	if len(r.events) != ringEvents || r.first != 20 || len(r.byID) != ringEvents {
		t.Errorf("got %d events from %d on, %d by id", len(r.events), r.first, len(r.byID))
	}

	if _, ok := r.resumeAt(place("e7", 7)); ok {
		t.Error("what is forgotten can be resumed")
	}

	if _, ok := r.resumeAt("f3.abcdef01-3"); ok {
		t.Error("what came just before it is forgotten, and it can be resumed")
	}

	big := make([]byte, ringBytes/4)
	for i := range 10 {
		r.add(Event{ID: fmt.Sprint("g", i), Data: big}, now)
	}

	if r.bytes > ringBytes || len(r.events) > 4 {
		t.Errorf("got %d events of %d bytes, want at most %d", len(r.events), r.bytes, ringBytes)
	}
}
