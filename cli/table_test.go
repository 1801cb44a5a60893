package cli

import (
	"flag"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"go-crontab/api/view"
	"go-crontab/job"
)

var update = flag.Bool("update", false, "write the golden files")

// golden compares with a file in testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()

	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}

	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s: got\n%s\nwant\n%s", name, got, want)
	}
}

var now = time.Date(2027, 1, 31, 12, 0, 0, 0, time.UTC)

func at(d time.Duration) *time.Time {
	t := now.Add(d)
	return &t
}

func sampleJobs() []jobView {
	return []jobView{
		{view.Job{
			ID: "1", Status: job.Active, NextDue: at(3 * time.Second), LastDue: at(-2 * time.Second),
			Spec: job.Spec{App: "default", Name: "hello", Every: job.Duration(5 * time.Second), Command: "echo hello"},
		}},
		{view.Job{ID: "12", Status: job.Paused, LastDue: at(-26 * time.Hour), Spec: job.Spec{
			App: "ops", Name: "备份数据库", Schedule: "0 3 * * *", Timezone: "Europe/Berlin",
			Command: "set -e\npg_dump \"$DB\" | gzip > /backup/$(date +%F).gz\nfind /backup -mtime +30 -delete",
		}}},
		{view.Job{ID: "103", Status: job.Active, NextDue: at(90 * time.Minute), Spec: job.Spec{
			App: "default", Name: "once 🚀", At: at(90 * time.Minute), Timezone: "UTC", Command: "printf '\x1b[2J'",
		}}},
		{view.Job{ID: "104", Status: job.Broken, Spec: job.Spec{
			App: "default", Name: "broken", Schedule: "@yearly", Timezone: "UTC", Command: "true",
		}}},
	}
}

// TestWidthOfColumns: in a terminal of 80 columns the columns that matter are wide enough to read.
func TestWidthOfColumns(t *testing.T) {
	t.Parallel()

	failed := &view.JobStat{
		App: "billing", Job: "nightly-invoices", Failed: 3,
		Health: &view.Health{Code: view.HealthFailing, Text: "Failing (3×)"},
		LastFailure: &view.LastFailure{Due: now, Node: "web-1", Outcome: job.Failed, Reason: "exit status 3",
			LastLine: "cannot connect to the mail server"},
	}
	backfill := backfillView{view.Backfill{
		ID: "274877906951", JobID: "12", App: "billing", Job: "nightly-invoices", From: now, To: now, Created: now,
		Parallel: 4, State: "running", Total: 31, Ended: 12,
	}}
	for _, test := range []struct {
		table *table
		least map[string]int
	}{
		{failureTable([]*view.JobStat{failed}, now), map[string]int{"JOB": 12, "WHY": 12, "OUTPUT": 12}},
		{backfillTable([]backfillView{backfill}, now), map[string]int{"JOB": 12, "FROM": 20, "PROGRESS": 18}},
	} {
		widths := test.table.fit(80)
		for i, c := range test.table.columns {
			if least, matters := test.least[c.head]; matters && widths[i] < least {
				t.Errorf("%s has the width %d, want %d or more; all: %v", c.head, widths[i], least, widths)
			}
		}
	}
}

func sampleRuns() []view.Run {
	late, exit := 0.7, 3
	run := view.Run{
		ID: "4294967297", JobID: "1", App: "default", Job: "hello", Due: now, Node: "node-1", Trigger: "schedule",
		State: "ended", Attempt: 1, Final: true,
	}

	ok, failed, missed, running := run, run, run, run
	ok.Started, ok.Ended, ok.LatenessMS, ok.Outcome = at(0), at(1240*time.Millisecond), &late, job.Succeeded
	failed.Started, failed.Ended, failed.LatenessMS = at(0), at(time.Hour+2*time.Minute), &late
	failed.Outcome, failed.ExitCode, failed.Trigger = job.Failed, &exit, "manual"
	missed.Outcome, missed.Count, missed.Until = job.Missed, 17, at(time.Minute)
	missed.Reason = "no node could start it within 1m0s of its due time"
	running.State, running.Started, running.LatenessMS = "running", at(-3*time.Second), &late
	return []view.Run{running, ok, failed, missed}
}

func TestTables(t *testing.T) {
	t.Parallel()

	cluster := view.Cluster{SessionExpiry: "20s", Sessions: []view.Session{
		{
			ID: "0bb2aa3e-dbd0-479e-bfdc-b17d6df5234d", Node: "web-1", Address: "http://127.0.0.1:8610", PID: 4711,
			Version: "v1.2.3", Started: *at(-time.Hour), BeatAgeMS: 1234, Prepared: 2, Executing: 1, Slots: 128,
			ClockOffsetMS: -0.2,
		},
		{
			ID: "9edaf7ba-f0f7-4633-80f4-6447ae9135b0", Node: "web-2", Address: "http://127.0.0.1:8610", PID: 12,
			Version: "v1.2.3", Started: *at(-time.Minute), BeatAgeMS: 14_000, Slots: 128, ClockOffsetMS: 86_400_000,
		},
		{
			ID: "a9cc44db-5e9a-464a-bcaf-b60fd3be3f0f", Node: "web-3", Address: "http://127.0.0.1:8610", PID: 13,
			Version: "v1.2.3", Started: *at(-time.Minute), BeatAgeMS: 90, Draining: true, Slots: 128,
		},
	}}

	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}

	change := time.Date(2027, 3, 28, 1, 0, 0, 0, time.UTC)
	due := []view.DueTime{{Due: *at(26 * time.Hour)}, {Due: change, Mark: job.Gap}}
	for name, table := range map[string]*table{
		"jobs":    jobTable(sampleJobs(), now),
		"runs":    runTable(sampleRuns(), true, now),
		"history": runTable(sampleRuns()[1:], false, now),
		"cluster": clusterTable(&cluster, now),
		"due":     dueTable(due, berlin, now),
	} {
		for _, width := range []int{0, 40, 60, 80, 120} {
			var b strings.Builder
			if err := table.print(&b, width, false); err != nil {
				t.Fatal(err)
			}

			file := name + ".txt"
			if width > 0 {
				file = strings.Replace(file, ".", "-"+strconv.Itoa(width)+".", 1)
			}

			golden(t, file, b.String())
			for line := range strings.Lines(b.String()) {
				line = strings.TrimRight(line, "\n")
				if strings.TrimRight(line, " ") != line {
					t.Errorf("%s: %q ends in a space", file, line)
				}
				if width > 0 && displayWidth(line) > width {
					t.Errorf("%s: %q takes %d columns, want at most %d", file, line, displayWidth(line), width)
				}
			}
		}
	}
}

func TestColoursCountForNothing(t *testing.T) {
	t.Parallel()

	table := runTable(sampleRuns(), true, now)
	var coloured, without strings.Builder
	if err := table.print(&coloured, 80, true); err != nil {
		t.Fatal(err)
	}
	if err := table.print(&without, 80, false); err != nil {
		t.Fatal(err)
	}

	stripped := coloured.String()
	for _, c := range []colour{bold, faint, red, green, yellow, cyan} {
		stripped = strings.ReplaceAll(stripped, "\x1b["+string(c)+"m", "")
	}

	if stripped = strings.ReplaceAll(stripped, "\x1b[0m", ""); stripped != without.String() ||
		stripped == coloured.String() {
		t.Errorf("got\n%q\nwant the same text as without colours\n%q", coloured.String(), without.String())
	}
}

func TestWidth(t *testing.T) {
	t.Parallel()

	for s, want := range map[string]int{
		"": 0, "abc": 3, "é": 1, "e\u0301": 1, "备份": 4, "한국": 4, "🚀x": 3, "…": 1, "ｆ": 2,
		"👨\u200d👩\u200d👧": 2, "🇨🇳": 2, "𗁭": 2,
	} {
		if got := displayWidth(s); got != want {
			t.Errorf("%q: got %d columns, want %d", s, got, want)
		}
	}

	for _, test := range []struct {
		s     string
		width int
		want  string
	}{{"hello", 5, "hello"}, {"hello", 4, "hel…"}, {"备份数据", 5, "备份…"}, {"备份数据", 4, "备…"}, {"ab", 1, "…"}} {
		if got := cut(test.s, test.width); got != test.want {
			t.Errorf("%q cut to %d: got %q, want %q", test.s, test.width, got, test.want)
		}
	}

	if got, want := plain("a\x1b[31m\nb\tc\r\u202edcba\x00"), "a�[31m↵b c�dcba�"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestTimes(t *testing.T) {
	t.Parallel()

	for d, want := range map[time.Duration]string{
		0: "now", 900 * time.Millisecond: "now", -time.Second: "1s ago", 59 * time.Second: "in 59s",
		3*time.Minute + 40*time.Second: "in 3m 40s", 4*time.Minute + 40*time.Second: "in 5m",
		119*time.Minute + 40*time.Second: "in 2h", 110 * time.Minute: "in 1h 50m", 66 * time.Hour: "in 2d 18h",
		59*time.Minute + 59*time.Second: "in 1h", 2*time.Hour - time.Second: "in 2h",
		47 * time.Hour: "in 1d 23h", -50 * time.Hour: "2d 2h ago", 37 * 24 * time.Hour: "in 37d",
		400 * 24 * time.Hour: "in 1y 35d", 5 * 365 * 24 * time.Hour: "in 5y",
	} {
		if got := relative(at(d), now); got != want {
			t.Errorf("%s: got %q, want %q", d, got, want)
		}
	}

	if got := relative(nil, now); got != "" {
		t.Errorf("no time: got %q", got)
	}

	for d, want := range map[time.Duration]string{
		400 * time.Microsecond: "<1ms", 1500 * time.Microsecond: "2ms", 1244 * time.Millisecond: "1.24s",
		20 * time.Second:                     "20s",
		200*time.Second + 3*time.Millisecond: "3m20s", 2 * time.Hour: "2h", 3 * time.Minute: "3m",
		99*time.Hour + time.Minute: "99h1m", 60416 * time.Hour: "7y",
	} {
		if got := precise(d); got != want {
			t.Errorf("%s: got %q, want %q", d, got, want)
		}
	}

	past := at(-800 * 24 * time.Hour)
	late := jobView{view.Job{Spec: job.Spec{At: past}, NextDue: past}}
	if got := nextDue(&late, now); !strings.HasSuffix(got, "which has passed: it starts at once") {
		t.Errorf("an instant that has passed: got %q", got)
	}

	zone := time.FixedZone("X", 3600)
	for s, want := range map[string]string{
		"2027-01-31T09:00:00Z": "2027-01-31T09:00:00Z", "2027-01-31 09:00": "2027-01-31T09:00:00+01:00",
		"2027-01-31": "2027-01-31T00:00:00+01:00",
		"+90s":       "2027-01-31T12:01:30Z",
	} {
		if got, err := parseTime(s, zone, now); err != nil || got.Format(time.RFC3339) != want {
			t.Errorf("%q: got %s, %v; want %s", s, got.Format(time.RFC3339), err, want)
		}
	}

	for _, s := range []string{"", "tomorrow", "+x", "12:00", "2027-13-01"} {
		if got, err := parseTime(s, zone, now); err == nil {
			t.Errorf("%q: got %s, want an error", s, got)
		}
	}

	for s, want := range map[string]string{
		"2027-02-30": "February 2027 has 28 days", "2027-13-01 09:00": "month out of range",
		"2027-01-31T25:00:00Z": "hour out of range",
	} {
		if _, err := parseTime(s, zone, now); err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%q: got %v, want %s", s, err, want)
		}
	}
}

// TestTimesAreReadAsPrinted: every command accepts times as any command prints them, in any time
// zone.
func TestTimesAreReadAsPrinted(t *testing.T) {
	t.Parallel()

	zones := map[string]*time.Location{}
	for _, name := range []string{"UTC", "Asia/Shanghai", "Europe/Berlin", "America/St_Johns", "Asia/Kathmandu"} {
		zone, err := time.LoadLocation(name)
		if err != nil {
			t.Fatal(err)
		}
		zones[name] = zone
	}

	repeated := time.Date(2027, 10, 31, 0, 30, 0, 0, time.UTC) // 02:30 in Berlin, for the first time
	for _, due := range []time.Time{now, repeated, repeated.Add(time.Hour), now.Add(250 * time.Millisecond)} {
		for printed, zone := range zones {
			for read, other := range zones {
				if got, err := parseTime(absolute(&due, zone), other, now); err != nil || !got.Equal(due) {
					t.Errorf("%s printed in %s and read in %s: got %s, %v", due, printed, read, got, err)
				}
			}
		}
	}

	berlin := zones["Europe/Berlin"]
	for s, want := range map[string]string{
		"2027-10-31 02:30": `the clock of Europe/Berlin shows that time twice; give "2027-10-31 02:30:00+02:00" or "2027-10-31 02:30:00+01:00"`,
		"2027-03-28 02:30": "the clock of Europe/Berlin skips 2027-03-28 02:30:00; give another time",
	} {
		if got, err := parseTime(s, berlin, now); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %s, %v; want %s", s, got, err, want)
		}
	}

	for s, want := range map[string]string{
		"2027-10-31 01:59": "2027-10-31T01:59:00+02:00", "2027-10-31 03:00": "2027-10-31T03:00:00+01:00",
		"2027-03-28 03:00": "2027-03-28T03:00:00+02:00",
	} {
		if got, err := parseTime(s, berlin, now); err != nil || got.Format(time.RFC3339) != want {
			t.Errorf("%q: got %s, %v; want %s", s, got.Format(time.RFC3339), err, want)
		}
	}
}

// TestLogsTellUnits: durations in logs have a unit.
func TestLogsTellUnits(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	(&logging{level: "info", format: "json"}).logger(&b).Info("draining", "grace", 8*time.Second)
	if !strings.Contains(b.String(), `"grace":"8s"`) {
		t.Errorf("got %s", b.String())
	}
}
