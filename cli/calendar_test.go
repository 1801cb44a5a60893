package cli

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const fakeCalendar = `{"name":"cn","description":"ours","timezone":"Asia/Shanghai","exclude_weekdays":["sat","sun"],"hours":{"only":["mon-fri 08:00-18:00"]},
 "exclude":[{"date":"2027-02-05","end":"2027-02-11","note":"Spring Festival"}],"include":[{"date":"2027-02-13","as":"thu"}],"jobs":2,"version":3,
 "created":"2027-01-31T12:00:00Z","updated":"2027-01-31T12:00:00Z","imported":{"excludes":1,"includes":1,"ignored":4}}`

func TestCalendarCommands(t *testing.T) {
	t.Parallel()

	f := newFakeAPI(t, map[string]func(*http.Request) (int, string){
		"GET /api/v1/calendars": always(200,
			`{"items":[{"name":"cn","timezone":"Asia/Shanghai","excludes":12,"includes":3,"jobs":2,"updated":"2027-01-31T12:00:00Z"}]}`),
		"GET /api/v1/calendars/cn":    always(200, fakeCalendar),
		"PUT /api/v1/calendars/cn":    always(200, fakeCalendar),
		"PUT /api/v1/calendars/d%2Fe": always(201, `{"name":"d/e","version":1}`),
		"GET /api/v1/calendars/cn/days": always(200,
			`{"items":[{"date":"2027-02-13","weekday":"sat","state":"makeup","as":"thu","hours":["08:00-18:00"],"why":"x"}]}`),
		"DELETE /api/v1/calendars/cn": always(204, ""),
		"DELETE /api/v1/calendars/used": always(409,
			`{"type":"urn:go-crontab:problem:in-use","title":"It is still in use","status":409,"detail":"the calendar \"used\" is in use by a/b"}`),
	})

	file := filepath.Join(t.TempDir(), "c.yaml")
	if err := os.WriteFile(file,
		[]byte("name: cn\nexclude:\n  - {date: 2027-02-05, end: 2027-02-11}\n  - 05-01\nhours: {only: [mon-fri 08:00-18:00]}\n---\nname: d/e\n"), 0o600); err != nil {
		t.Fatal(err)
	}

	for line, want := range map[string]string{
		"calendar ls":                        "CALENDAR  TIMEZONE       EXCLUDED  INCLUDED  JOBS  CHANGED\ncn        Asia/Shanghai        12         3     2  ",
		"calendar show cn":                   "2027-02-05 to 2027-02-11  exclude         Spring Festival\n2027-02-13                include as thu\n",
		"calendar show cn -o json":           `"exclude_weekdays": [`,
		"calendar days cn --from 2027-02-13": "DATE        DAY  STATE          HOURS        NOTE\n2027-02-13  sat  makeup as thu  08:00-18:00  x\n",
		"calendar apply -f " +
			file: "calendar cn, version 3: 1 excluded, 1 included, 2 jobs\ncalendar d/e, version 1: 0 excluded, 0 included, 0 jobs\n",
		"calendar apply -o name -f " + file: "cn\nd/e\n",
		"calendar rm cn":                    "deleted calendar cn\n",
	} {
		args := append(strings.Fields(line), "--server", f.URL)
		if got := command(args...); got.code != 0 || !strings.Contains(got.out, want) {
			t.Errorf("%s: got %+v, want %q", line, got, want)
		}
	}

	sent := map[string]bool{}
	for i, asked := range f.asked {
		sent[asked+" "+f.bodies[i]] = true
	}

	for _, want := range []string{
		`PUT /api/v1/calendars/cn {"exclude":[{"date":"2027-02-05","end":"2027-02-11"},"05-01"],"hours":{"only":["mon-fri 08:00-18:00"]},"name":"cn"}`,
		`PUT /api/v1/calendars/d%2Fe {"name":"d/e"}`, "GET /api/v1/calendars/cn/days?from=2027-02-13 ",
	} {
		if !sent[want] {
			t.Errorf("was not sent: %s; was: %v", want, sent)
		}
	}

	for line, want := range map[string]struct {
		code int
		says string
	}{
		"calendar show nix":               {exitNotFound, `there is no calendar "nix"`},
		"calendar days nix":               {exitNotFound, `there is no calendar "nix"`},
		"calendar rm used":                {exitRefused, "in use by a/b"},
		"calendar apply":                  {exitUsage, "-f FILE is missing"},
		"calendar apply -f /nix":          {exitUsage, "no such file"},
		"calendar import cn":              {exitUsage, "FILE"},
		"calendar import cn x.xls":        {exitUsage, "cannot tell the format"},
		"calendar import cn - --format x": {exitUsage, "want one of ics, csv"},
	} {
		if got := command(append(strings.Fields(line), "--server", f.URL)...); got.code != want.code ||
			!strings.Contains(got.err, want.says) {
			t.Errorf("%s: got %+v, want %d and %q", line, got, want.code, want.says)
		}
	}
}

func TestCalendarImport(t *testing.T) {
	t.Parallel()

	var asked string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		asked = fmt.Sprintf("%s %s %s %q", r.Method, r.URL.RequestURI(), r.Header.Get("Content-Type"), body)
		fmt.Fprint(w, fakeCalendar)
	}))
	defer server.Close()

	file := filepath.Join(t.TempDir(), "holidays.ICS")
	if err := os.WriteFile(file, []byte("BEGIN:VCALENDAR\r\n"), 0o600); err != nil {
		t.Fatal(err)
	}

	got := command("calendar", "import", "cn x", file, "--add", "--workday", "補班", "--server", server.URL)
	if want := `POST /api/v1/calendars/cn%20x/import?format=ics&mode=add&workday=%E8%A3%9C%E7%8F%AD text/calendar "BEGIN:VCALENDAR\r\n"`; asked != want {
		t.Errorf("asked %s, want %s", asked, want)
	}
	if got.code != 0 || got.out != "calendar cn, version 3: 1 excluded, 1 included, 2 jobs\n" ||
		got.err != "the file has 1 days off and 1 make-up workdays\n4 other events were ignored\n" {
		t.Errorf("got %+v", got)
	}

	got = command("calendar", "import", "cn", "-", "--format", "csv", "--dry-run", "--server", server.URL)
	if want := `POST /api/v1/calendars/cn/import?dry_run=true&format=csv text/csv ""`; asked != want ||
		!strings.HasPrefix(got.out, "dry run: calendar cn") {
		t.Errorf("asked %s, want %s; got %+v", asked, want, got)
	}
}

func TestAddWithCalendars(t *testing.T) {
	t.Parallel()
	f := newFakeAPI(t, map[string]func(*http.Request) (int, string){"POST /api/v1/jobs": always(201, fakeJob)})
	got := command("job", "add", "x", "--at", "2027-01-31 09:00", "-z", "china standard time", "--calendar", "a",
		"--calendar", "b,c", "--on-closed", "next", "--weeks-every", "2", "--weeks-from", "2026-01-05",
		"-c", "true", "--server", f.URL)
	want := `{"app":"default","at":"2027-01-31T09:00:00+08:00","calendars":["a","b,c"],"command":"true","name":"x",` +
		`"on_closed":"next","timezone":"china standard time","weeks":{"every":2,"from":"2026-01-05"}}`
	if got.code != 0 || f.bodies[0] != want {
		t.Errorf("got %+v, sent %s, want %s", got, f.bodies[0], want)
	}
}
