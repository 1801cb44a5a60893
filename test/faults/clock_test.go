//go:build faults

package faults

import (
	bytesOf "encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	"go-crontab/internal/privatedb"
	"go-crontab/job"
	"go-crontab/test/ledger"
)

// A dbClock is the clock of a database server, which its scenario sets.
type dbClock struct {
	t    *testing.T
	path string
	sets []setting
}

// A setting is the course of the clock from an instant on.
type setting struct {
	at    time.Time
	ahead time.Duration
	ppm   int64
}

// reads returns the latest time that the clock, as nodes knew it, may have shown at an instant:
// they learn of a new setting within a beat.
func (k *dbClock) reads(at time.Time, beat time.Duration) (latest time.Time) {
	for i, s := range k.sets {
		if s.at.After(at) || i+1 < len(k.sets) && k.sets[i+1].at.Before(at.Add(-beat)) {
			continue
		}
		shown := at.Add(s.ahead + at.Sub(s.at)*time.Duration(s.ppm)/1e6)
		if shown.After(latest) {
			latest = shown
		}
	}

	return latest
}

// clocked makes a cluster whose server has a separate clock, initially ahead of the real one.
func clocked(r *report, ahead time.Duration) (*cluster, *dbClock) {
	t := r.t
	t.Helper()
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		r.skip("the server's clock is set by a library for Linux on x86-64")
	}

	dir := t.TempDir()
	library := filepath.Join(dir, "clock.so")
	if out, err := exec.Command("cc", "-O2", "-shared", "-fPIC", "-o", library, "testdata/clock.c",
		"-ldl").CombinedOutput(); err != nil {
		r.skip("needs a C compiler: %v %.300s", err, out)
	}

	k := &dbClock{t: t, path: filepath.Join(dir, "clock")}
	k.set(ahead, 0)
	c := newServer(r, privatedb.Options{Env: []string{"LD_PRELOAD=" + library, "FAULTS_CLOCK=" + k.path}})
	if off := time.Until(c.now()) - ahead; off.Abs() > 2*time.Second {
		t.Fatalf("the server's clock is off by %s: the library has no effect", off)
	}

	return c, k
}

// set puts the clock ahead of the real one, and makes it too fast by this many millionths from now
// on.
func (k *dbClock) set(ahead time.Duration, ppm int64) {
	k.t.Helper()
	var b []byte
	now := time.Now()
	k.sets = append(k.sets, setting{now, ahead, ppm})

	for _, n := range []int64{ahead.Microseconds(), ppm, now.UnixMicro()} {
		b = bytesOf.NativeEndian.AppendUint64(b, uint64(n))
	}

	f, err := os.OpenFile(k.path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		k.t.Fatal(err)
	}
	defer f.Close()

	if _, err := f.WriteAt(b, 0); err != nil { // in place: the server has mapped it
		k.t.Fatal(err)
	}
}

func TestF17Clock(t *testing.T) {
	t.Parallel()

	r := scenario(t, "F17",
		"MySQL's clock 300 s ahead, back again, and 5 % too fast and too slow (F19: 500 millionths too fast)")
	c, clock := clocked(r, 0)
	c.start(3)
	l := c.mixed()
	l.early, l.missed = 24*time.Hour, [2]time.Duration{} // the ledger's clock is the real one
	time.Sleep(4 * time.Second)
	before := c.sessions()
	clock.set(0, 500)
	time.Sleep(5 * time.Second)
	c.same(before, "500 millionths too fast")
	clock.set(0, 50_000)
	time.Sleep(time.Duration(times(8, 300)) * time.Second)
	c.same(before, "5 % too fast")
	clock.set(0, -50_000)
	time.Sleep(time.Duration(times(8, 300)) * time.Second)
	c.same(before, "5 % too slow")

	for range times(1, 5) {
		clock.set(300*time.Second, 0)
		time.Sleep(2*c.expiry + time.Second)
		c.same(before, "a step of 300 s forwards")
		clock.set(0, 0)
		time.Sleep(2*c.expiry + time.Second)
		c.same(before, "a step of 300 s backwards")
		clock.set(320*time.Second, 0)
		time.Sleep(c.expiry)
		c.same(before, "a step forwards again")
	}

	time.Sleep(3 * time.Second)
	l.check(0)
	entries, err := l.book.Entries()
	if err != nil {
		t.Fatal(err)
	}

	// A beat is sent every tenth of the expiry, and has as long to be answered. A node uses the
	// fastest of its last readings of the clock.
	early, beat := 0, c.expiry/2
	worst := time.Duration(0)
	for _, e := range entries {
		if e.Kind == ledger.Start && e.Attempt == 1 {
			by := e.Due.Time().Sub(clock.reads(e.At.Time(), beat))
			worst = max(worst, by)
			if by > 100*time.Millisecond+stalledIn(e.At.Time().Add(-c.expiry/5), e.At.Time())/2 {
				early++
			}
		}
	}

	r.figure("by that clock started at most %s early", short(worst))
	if early > 0 {
		t.Errorf("%d due times were started up to %s early by MySQL's clock", early, short(worst))
	}
}

func TestF41DaylightSaving(t *testing.T) {
	t.Parallel()

	r := scenario(t, "F41", "MySQL's clock set to just before both changes of the clocks in Berlin, 2026 and 2027")

	at := func(text string) time.Time {
		instant, err := time.Parse(time.RFC3339, text)
		if err != nil {
			t.Fatal(err)
		}
		return instant
	}

	c, clock := clocked(r, time.Until(at("2026-10-24T23:45:00Z"))) // enough time to begin
	c.start(2)
	berlin := func(name, schedule string) int64 {
		return c.create(object{"name": name, "schedule": schedule, "timezone": "Europe/Berlin", "command": "true",
			"misfire": object{"policy": "skip", "after": "1s"}})
	}

	// 02:00:05, which comes twice in autumn, and in spring is replaced by the end of the gap.
	once := berlin("once", "5 0 2 * * *")
	each := berlin("each", "5 0 * * * *")       // every hour, including both of the repeated ones
	gap := berlin("gap", "30 2 * * *")          // does not happen either
	before := berlin("before", "58 59 1 * * *") // 01:59:58
	go2 := func(to string) { clock.set(time.Until(at(to)), 0); time.Sleep(16 * time.Second) }
	go2("2026-10-24T23:59:50Z")
	time.Sleep(4 * time.Second)
	go2("2026-10-25T00:59:54Z")
	go2("2027-03-28T00:59:54Z")

	ran := func(id int64) (dues []string) {
		rows, err := c.db.Query("SELECT due FROM run WHERE job_id = ? AND outcome = 'succeeded' ORDER BY due", id)
		if err != nil {
			t.Fatal(err)
		}
		defer rows.Close()

		for rows.Next() {
			var due job.Micros
			if err := rows.Scan(&due); err != nil {
				t.Fatal(err)
			}
			dues = append(dues, due.Time().UTC().Format("2006-01-02T15:04:05Z"))
		}

		return dues
	}

	for _, x := range []struct {
		name string
		id   int64
		want []string
	}{
		{"once", once, []string{"2026-10-25T00:00:05Z", "2027-03-28T01:00:00Z"}},
		{"each", each, []string{"2026-10-25T00:00:05Z", "2026-10-25T01:00:05Z", "2027-03-28T01:00:05Z"}},
		{"gap", gap, []string{"2027-03-28T01:00:00Z"}},
		{"before", before, []string{"2026-10-24T23:59:58Z", "2027-03-28T00:59:58Z"}},
	} {
		if got := ran(x.id); !slices.Equal(got, x.want) {
			t.Errorf("%s ran at %v, want %v", x.name, got, x.want)
		}
	}

	r.figure("4 jobs, 3 changes of the hour passed, each ran when it should")
}
