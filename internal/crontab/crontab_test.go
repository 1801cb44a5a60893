package crontab

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"go-crontab/job"
)

var update = flag.Bool("update", false, "write the golden files")

// said formats a result as text: jobs, notes and refusals by line.
func said(f *File) string {
	var b strings.Builder
	for _, e := range f.Entries {
		s := e.Job
		text, err := json.MarshalIndent(minimal(&s), "", "  ")
		if err != nil {
			return err.Error()
		}
		fmt.Fprintf(&b, "line %d %s\n", e.Line, text)
		for _, n := range e.Notes {
			fmt.Fprintf(&b, "  note: %s\n", n.Message)
		}
	}

	for _, n := range f.Notes {
		fmt.Fprintf(&b, "note of line %d: %s\n", n.Line, n.Message)
	}

	for _, n := range f.Refused {
		fmt.Fprintf(&b, "refused line %d: %s\n", n.Line, n.Message)
	}
	return b.String()
}

func minimal(s *job.Spec) json.RawMessage {
	s.Defaults(someday)
	text, err := s.Minimal()
	if err != nil {
		return json.RawMessage(`"` + err.Error() + `"`)
	}
	return text
}

// TestCrontabs compares the results for the files in testdata with the expected texts.
func TestCrontabs(t *testing.T) {
	t.Parallel()

	files, err := filepath.Glob("testdata/*.crontab")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}

	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}

		name := filepath.Base(file)
		got := said(Read(text,
			Options{
				Name: name, System: strings.HasPrefix(name, "system"), App: "default", Zone: "Europe/Berlin",
			}, &Names{}))

		golden := strings.TrimSuffix(file, ".crontab") + ".txt"
		if *update {
			if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}

		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if got != string(want) {
			t.Errorf("%s: got\n%s\nwant\n%s", file, got, want)
		}
	}
}

// one reads a single line.
func one(line string) *File { return Read([]byte(line+"\n"), Options{App: "default"}, &Names{}) }

func TestPercent(t *testing.T) {
	t.Parallel()

	for line, want := range map[string][2]string{
		`cmd`:                  {"cmd", ""},
		`cmd %`:                {"cmd", ""},
		`cmd %in`:              {"cmd", "in\n"},
		`cmd %a%b%`:            {"cmd", "a\nb\n"},
		`cmd %%a`:              {"cmd", "\na\n"},
		`date +\%F`:            {"date +%F", ""},
		`date +\%F %in \% x\y`: {"date +%F", "in % x\\y\n"},
		`a\\%b`:                {`a\\`, "b\n"}, // the second backslash is escaped already
		`a\b\\c`:               {`a\b\\c`, ""},
		`a %b\\%c`:             {"a", "b\\%c\n"}, // in the input the last backslash counts
		`a %b\`:                {"a", "b\\\n"},
		`a\`:                   {`a\`, ""},
		`"%" x`:                {`"`, "\" x\n"}, // quotes do not protect it
	} {
		f := one("* * * * * " + line)
		if len(f.Entries) != 1 {
			t.Errorf("%s: got %+v", line, f)
			continue
		}
		if got := [2]string{f.Entries[0].Job.Command, f.Entries[0].Job.Stdin}; got != want {
			t.Errorf("%s: got %q, want %q", line, got, want)
		}
	}
}

func TestAssignment(t *testing.T) {
	t.Parallel()

	for line, want := range map[string]string{
		"A=b":                      "A|b",
		"A = b c ":                 "A|b c",
		"A=":                       "A|",
		`A="b c "`:                 "A|b c ",
		`A='"b" '  `:               `A|"b" `,
		`"A"='b'`:                  "A|b",
		`A=b"c"`:                   `A|b"c"`,
		`A=b=c`:                    "A|b=c",
		"A\t=\tb":                  "A|b",
		`A="b" c`:                  "",
		`A="b`:                     "",
		"A b=c":                    "",
		"=b":                       "",
		"* * * * * A=b cmd":        "",
		"@daily A=b cmd":           "",
		"0 3 * * * x --opt=1":      "",
		`PATH=$HOME/bin:/usr/bin`:  "PATH|$HOME/bin:/usr/bin",
		`MAILTO=""`:                "MAILTO|",
		"*/5 * * * * echo a = b":   "",
		`'A B'=c`:                  "A B|c",
		`SHELL=/bin/bash # really`: "SHELL|/bin/bash # really",
	} {
		name, value, ok := assignment(line)
		got := ""
		if ok {
			got = name + "|" + value
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", line, got, want)
		}
	}
}

func TestRefused(t *testing.T) {
	t.Parallel()

	for text, want := range map[string]string{
		"@reboot x":                    "a cluster has no boot",
		"@sometimes x":                 "not a known macro",
		"@daily":                       "no command",
		"* * * * *":                    "neither NAME=value nor five fields",
		"hello":                        "neither NAME=value nor five fields",
		"61 * * * * x":                 "minute \"61\": not between 0 and 59",
		"* * * * * * x":                "the command begins with *",
		"0 0 */2 * 1 x":                "in cron a day must match both",
		"22-2 * * * * x":               "the range runs backwards",
		"5~1 * * * * x":                "must be a range such as 0~59",
		"0 0 31 2 * x":                 "never fires",
		"* * * * * %x":                 "no command",
		"CRON_TZ=Nowhere\n0 3 * * * x": "CRON_TZ",
		"HOME=x\n0 3 * * * x":          "HOME is \"x\"",
		"A-B=1":                        "A-B: is not a valid variable name",
		"LD_PRELOAD=x.so":              "LD_PRELOAD: cannot be set here",
		"START_HOURS_RANGE=3-22":       "anacron",
		"RANDOM_DELAY=x":               "not a number of minutes",
		"0 3 * * * " + strings.Repeat("x", 70_000): "at most 65536 are allowed",
		"a\x00b":                       "NUL byte",
		"\xff":                         "not valid UTF-8",
		strings.Repeat("#\n", MaxSize): "larger than",
	} {
		f := one(text)
		if len(f.Refused) != 1 || !strings.Contains(f.Refused[0].Message, want) {
			t.Errorf("%.40q: got %+v, want it refused: %s", text, f.Refused, want)
		}
	}

	f := Read([]byte("@reboot x\nBAD-NAME=1\n0 3 * * * y\n"), Options{Skip: []int{1, 2}}, &Names{})
	if f.Refused != nil || len(f.Entries) != 1 || !slices.Equal(f.Skipped, []int{1, 2}) {
		t.Errorf("lines left out: got %+v", f)
	}

	if f := Read([]byte("0 3 * * * /bin/x\n"), Options{System: true}, &Names{}); len(f.Refused) != 1 ||
		!strings.Contains(f.Refused[0].Message, "there is no command: in this kind of crontab, the user") {
		t.Errorf("without a user: got %+v", f)
	}
}

// TestTwoDayFields compares the results for lines with both day fields with cron's rule, day by
// day.
func TestTwoDayFields(t *testing.T) {
	t.Parallel()

	doms := []string{"*", "*/1", "*/2", "*/40", "1-7", "8-14", "22-28", "13", "1-31", "1,15", "*/31"}
	dows := []string{"*", "*/1", "*/2", "*/7", "1", "0", "7", "1-5", "0-7", "MON,fri", "*/9"}
	day := func(field string, i, v int) bool {
		switch {
		case strings.HasPrefix(field, "*/"):
			var step int
			fmt.Sscanf(field, "*/%d", &step)
			first := kinds[i].first
			for x := first; x <= kinds[i].last; x += step {
				if x == v || i == 4 && x%7 == v {
					return true
				}
			}
			return false
		case field == "MON,fri":
			return v == 1 || v == 5
		}
		return holds(field, v, i)
	}

	refused := 0
	for _, dom := range doms {
		for _, dow := range dows {
			f := one("0 0 " + dom + " * " + dow + " x")
			if len(f.Entries) == 0 {
				refused++
				continue
			}

			c, err := job.ParseCron(f.Entries[0].Job.Schedule, nil)
			if err != nil {
				t.Fatal(err)
			}

			for at := someday; at.Year() == someday.Year(); at = at.AddDate(0, 0, 1) {
				a, b := day(dom, 2, at.Day()), day(dow, 4, int(at.Weekday()))
				want := a || b
				if strings.HasPrefix(dom, "*") || strings.HasPrefix(dow, "*") {
					want = a && b
				}
				if got := c.Count(at.Add(-1), at) == 1; got != want {
					t.Errorf("%s and %s became %s: on %s due %v, want %v", dom, dow, c, at.Format("2006-01-02 Mon"),
						got, want)
					break
				}
			}
		}
	}

	if refused == 0 || refused > 45 {
		t.Errorf("%d of %d combinations are refused", refused, len(doms)*len(dows))
	}
}

func TestNames(t *testing.T) {
	t.Parallel()

	for command, want := range map[string]string{
		"/usr/local/bin/backup.sh --all":                                                                          "backup",
		"cd / && run-parts --report /etc/cron.hourly":                                                             "cron.hourly",
		"test -x /usr/sbin/anacron || { cd / && run-parts --report /etc/cron.daily; }":                            "cron.daily",
		"[ -x /usr/lib/php/sessionclean ] && if [ ! -d /run/systemd/system ]; then /usr/lib/php/sessionclean; fi": "sessionclean",
		"command -v debian-sa1 > /dev/null && debian-sa1 1 1":                                                     "debian-sa1",
		"PATH=/bin FOO='a b' nice -n 10 ionice -c3 pg_dump shop | gzip > x":                                       "pg_dump",
		"sudo -u www /usr/bin/php7.4 /srv/app/artisan schedule:run":                                               "artisan",
		"flock -n /tmp/x.lock timeout 240 sync-orders":                                                            "sync-orders",
		"bash -c 'cd /srv && ./deploy.sh now'":                                                                    "deploy",
		"python3 -u /opt/reports/daily_report.py":                                                                 "daily_report",
		"sleep $((RANDOM % 100)); cleanup >/dev/null 2>&1":                                                        "cleanup",
		"/usr/bin/env node /srv/x/job.js":                                                                         "job",
		"(cd /x; make)":                                                                                           "make",
		"curl -fsS https://example.com/cron.php >/dev/null":                                                       "curl",
		"test -x /usr/bin/certbot -a \\! -d /run && perl -e 'sleep int(rand(43200))' && certbot -q renew":         "certbot",
		"if [ ! -d /run/systemd/system ]; then /usr/sbin/invoke-rc.d anacron start >/dev/null; fi":                "anacron",
		"%%%":                    "job",
		"'":                      "job",
		"備份.sh":                  "備份",
		"exec /bin/zsh -c 'x y'": "x",
	} {
		n := &Names{}
		if got := n.next("", &job.Spec{Command: command}); got != want {
			t.Errorf("%s: got %s, want %s", command, got, want)
		}
	}

	n := &Names{}
	var got []string
	for _, command := range []string{
		"php artisan queue:work", "php artisan schedule:run --x", "php artisan schedule:run",
		"php artisan schedule:run",
	} {
		got = append(got, n.next("", &job.Spec{Command: command}))
	}

	if want := "artisan artisan-schedule:run"; !strings.HasPrefix(strings.Join(got, " "), want) ||
		len(slices.Compact(slices.Sorted(slices.Values(got)))) != 4 {
		t.Errorf("got %v, want four names that begin with %s", got, want)
	}
}

// TestNamesOfEqualLines counts allocations as a measure of the names that are tried: each equal
// line must not try all names of the lines before it. It is not parallel, because other tests would
// allocate too.
func TestNamesOfEqualLines(t *testing.T) {
	const lines = 20_000
	var last string
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	n := &Names{}
	for range lines {
		last = n.next("", &job.Spec{App: "a", Schedule: "@daily", Command: "x"})
	}

	runtime.ReadMemStats(&after)
	if each := (after.Mallocs - before.Mallocs) / lines; each > 100 {
		t.Errorf("%d allocations for each name", each)
	}
	if want := fmt.Sprint("x-", lines-1); last != want { // x, x with its hash, x-2 and so on
		t.Errorf("the last one is %s, want %s", last, want)
	}
	if other := n.next("", &job.Spec{App: "b", Command: "x"}); other != "x" {
		t.Errorf("of another app: got %s", other)
	}
}

// TestMost: reading stops at the limit.
func TestMost(t *testing.T) {
	t.Parallel()

	for what, c := range map[string]struct {
		text string
		told int
		cut  bool
	}{
		"as many":      {strings.Repeat("@daily x\n", 3), 6, false}, // and the notes about the whole file
		"more jobs":    {strings.Repeat("@daily x\n", 50), 7, true},
		"no jobs":      {strings.Repeat("x\n", 50), 4, true},
		"only to tell": {strings.Repeat("MAILFROM=x\n", 50), 4, true},
	} {
		got := Read([]byte(c.text), Options{Most: 3}, &Names{})
		if n := len(got.Entries) + len(got.Notes) + len(got.Refused); got.Cut != c.cut || n != c.told {
			t.Errorf("%s: cut is %t, and %d things are told", what, got.Cut, n)
		}
	}
}

// FuzzRead: no input causes a panic, accepted jobs are valid, everything else is refused, and no
// line is lost.
func FuzzRead(f *testing.F) {
	files, _ := filepath.Glob("testdata/*.crontab")
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text, true)
		f.Add(text, false)
	}

	f.Fuzz(func(t *testing.T, text []byte, system bool) {
		if len(text) > 5000 {
			return
		}

		out := Read(text, Options{System: system, App: "default", Zone: "Europe/Berlin"}, &Names{})
		seen := map[int]bool{}
		names := map[string]bool{}
		for _, e := range out.Entries {
			s := e.Job
			s.Defaults(someday)
			if err := s.Validate(); err != nil {
				t.Fatalf("line %d: %v", e.Line, err)
			}
			if names[s.Name] || seen[e.Line] {
				t.Fatalf("line %d: the name %q, or the line, is there twice", e.Line, s.Name)
			}
			names[s.Name], seen[e.Line] = true, true
		}

		whole := false
		for _, r := range out.Refused {
			seen[r.Line] = true
			whole = whole || r.Line == 0
		}

		if whole {
			return
		}

		for i, line := range strings.Split(strings.TrimSuffix(string(text), "\n"), "\n") {
			line = strings.TrimLeft(strings.TrimSuffix(line, "\r"), " \t")
			if _, _, isSet := assignment(line); line != "" && line[0] != '#' && !isSet && !seen[i+1] {
				t.Fatalf("line %d is lost: %q", i+1, line)
			}
		}
	})
}

// TestNamesOfFiles: the name of a file in /etc/cron.d begins the names of its jobs.
func TestNamesOfFiles(t *testing.T) {
	t.Parallel()

	for command, want := range map[string]string{
		"/usr/bin/munin-cron":         "munin-cron",
		"munin":                       "munin",
		"cat /etc/munin/munin.conf":   "munin-cat",
		"[ -x /usr/lib/x ] && munind": "munin-munind",
	} {
		if got := new(Names).next("munin", &job.Spec{Command: command}); got != want {
			t.Errorf("%s: got %s, want %s", command, got, want)
		}
	}
}

// TestWhatAllJobsGet: selector, labels and timeout are set on all jobs, and silence the notes about
// their absence.
func TestWhatAllJobsGet(t *testing.T) {
	t.Parallel()

	o := Options{
		Name: "web-1:/etc/crontab", Selector: "node=web-1", Labels: map[string]string{"team": "data"},
		Timeout: job.Duration(time.Hour),
	}
	if err := o.Check(); err != nil {
		t.Fatal(err)
	}

	f := Read([]byte("0 3 * * * a\n0 4 * * * b\n"), o, &Names{})
	for _, e := range f.Entries {
		s := e.Job
		if s.Selector != "node=web-1" || s.Timeout != o.Timeout || len(s.Labels) != 2 || s.Labels["team"] != "data" {
			t.Errorf("got %+v", s)
		}
	}
	if text := said(f); strings.Contains(text, "on one machine") || strings.Contains(text, "no timeout") {
		t.Errorf("got %s", text)
	}
	if text := said(one("0 3 * * * a")); !strings.Contains(text, "on one machine") ||
		!strings.Contains(text, "no timeout") {
		t.Errorf("without them: got %s", text)
	}

	for _, wrong := range []Options{
		{Selector: "node=="}, {Timeout: -1}, {Labels: map[string]string{"crontab": "x"}},
	} {
		if wrong.Check() == nil {
			t.Errorf("%+v: got no error", wrong)
		}
	}
}

// TestHints: what a line needs to know about systemd, random sleeps and mail.
func TestHints(t *testing.T) {
	t.Parallel()

	const systemd, sleeps, noMail = "tests for /run/systemd/system", "sleeps for a random time", "it is no mail address"
	for line, want := range map[string][]string{
		`0 */12 * * * test -x /usr/bin/certbot -a \! -d /run/systemd/system && perl -e 'sleep int(rand(43200))' && certbot -q renew`: {
			systemd, sleeps,
		},
		`30 3 * * 0 test -e /run/systemd/system || SERVICE_MODE=1 /usr/sbin/e2scrub_all`: {systemd},
		`@daily sleep $((RANDOM \% 1800)); cleanup`:                                      {sleeps},
		`@daily python3 -c 'import random, time; time.sleep(random.random() * 3600)'`:    {sleeps},
		`@daily sleep $(shuf -i 0-600 -n 1); x`:                                          {sleeps},
		`@daily sleep 5; random-art`:                                                     nil,
		`MAILTO=root`:                                                                    {noMail},
		`MAILTO=ops@example.com`:                                                         nil,
	} {
		text := said(one(line))
		for _, note := range []string{systemd, sleeps, noMail} {
			if strings.Contains(text, note) != slices.Contains(want, note) {
				t.Errorf("%s: got %s; want %q: %t", line, text, note, slices.Contains(want, note))
			}
		}
	}
}
