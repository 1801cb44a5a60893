package alert

import (
	"fmt"
	"testing"

	"go-crontab/test/testdb"
)

// TestEachSent: finding the incidents of an alert reads no messages that are older than it.
func TestEachSent(t *testing.T) {
	f := setUp(t)
	insert := "INSERT INTO delivery (idem, kind, channel_id, rule_id, state, next_at, items, created, updated) "
	f.exec(insert + "VALUES ('', 'alert', 1, 1, 2, 1, '[]', 1, 1)")
	for range 12 {
		f.exec(insert + "SELECT '', 'alert', 1, 1, 2, 1, '[]', 1, 1 FROM delivery")
	}
	since := 2 * hour
	f.exec(insert+"VALUES ('', 'alert', 1, 1, 2, 1, '[]', ?, 1), ('', 'alert', 2, 1, 2, 1, '[]', ?, 1)",
		int64(since), int64(since))

	db, _ := f.proxied()
	n, before := 0, int64(0)
	for range 2 { // the server reads more rows to open a table
		n, before = 0, testdb.Reads(t, db.Raw())
		err := eachSent(db.Reader(t.Context()), 1, []int64{1}, since, func(int64, string, bool) { n++ })
		if err != nil {
			t.Fatal(err)
		}
	}
	if read := testdb.Reads(t, db.Raw()) - before; n != 1 || read > 50 {
		t.Errorf("got %d messages and read %d rows, want one, and few rows", n, read)
	}
}

// TestDueDeliveries: messages of busy lanes take no place in the list. Finding messages for
// channels reads neither sent messages nor pings.
func TestDueDeliveries(t *testing.T) {
	f := setUp(t)
	const pings, now, limit = 4096, 1000, 20
	insert := "INSERT INTO delivery (idem, kind, channel_id, job_id, state, next_at, items, created, updated) "
	f.exec(insert + "VALUES ('', 'ping', 0, 1, 0, 1, '[]', 1, 1)")
	for n := 1; n < pings; n *= 2 {
		f.exec(insert+"SELECT '', 'ping', 0, job_id + ?, 0, 1, '[]', 1, 1 FROM delivery", n)
	}

	f.exec("UPDATE delivery SET target = IF(job_id MOD 2 = 0, 'even', 'odd')")
	f.exec(insert + "SELECT '', 'alert', 1, 0, 2, 1, '[]', 1, 1 FROM delivery")
	for i := range 40 {
		f.exec(insert+"VALUES ('', 'alert', 1, 0, 0, ?, '[]', 1, 1)", 10+i)
	}

	for i := range 10 {
		f.exec(insert+"VALUES ('', 'heartbeat', 2, 0, 0, ?, '[]', 1, 1)", 100+i)
	}

	f.exec(insert + `VALUES ('', 'alert', 2, 0, 0, 1001, '[]', 1, 1),
		('', 'alert', 1, 0, 1, 1, '[]', 1, 1),
		('', 'alert', 2, 0, 1, 1, '[]', 1, 1)`)

	db, _ := f.proxied()
	for _, c := range []struct {
		name string
		busy busyLanes
		want map[string]int
		most int64 // most rows that may be read; 0: any number
	}{
		{"nothing is busy", busyLanes{},
			map[string]int{"pings 0": 5, "pings 1": 5, "pings 2": 5, "pings 3": 5, "channel 1": 21, "channel 2": 1}, 0},
		{"a channel", busyLanes{Channels: []int64{1}},
			map[string]int{"pings 0": 5, "pings 1": 5, "pings 2": 5, "pings 3": 5, "channel 2": 11}, 0},
		{"some pings", busyLanes{Pings: []pingLane{{"even", 0}, {"odd", 1}, {"odd", 3}, {"odd", 2}}},
			map[string]int{"pings 2": 20, "channel 1": 21, "channel 2": 1}, 0},
		{"all pings, and a channel", busyLanes{Channels: []int64{1, 7}, Pings: []pingLane{{"even", 0}}, NoPings: true},
			map[string]int{"channel 2": 11}, 400},
	} {
		// the server reads more rows to open a table
		if _, err := dueDeliveries(db.Reader(t.Context()), now, c.busy, limit); err != nil {
			t.Fatal(err)
		}
		before := testdb.Reads(t, db.Raw())
		rows, err := dueDeliveries(db.Reader(t.Context()), now, c.busy, limit)
		if err != nil {
			t.Fatal(err)
		}
		read := testdb.Reads(t, db.Raw()) - before
		got := map[string]int{}
		for _, d := range rows {
			if d.Kind == DeliveryPing {
				got[fmt.Sprintf("pings %d", d.JobID%4)]++
			} else {
				got[fmt.Sprintf("channel %d", d.ChannelID)]++
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
		if c.most > 0 && read > c.most {
			t.Errorf("%s: %d rows were read, want no more than %d", c.name, read, c.most)
		}
	}
}
