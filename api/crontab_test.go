package api_test

import (
	"strings"
	"testing"

	"go-crontab/internal/auth"
)

// TestCrontab reads a pasted crontab; its result can be applied.
func TestCrontab(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	const text = "MAILTO=ops@example.com\n# the shop\n0 3 * * * backup.sh\n@reboot start.sh\n*/5 * * * * load orders\n"
	got := s.call("POST", "/api/v1/crontab",
		object{"text": text, "app": "shop", "timezone": "Europe/Berlin", "user": "www-data"}).want(200).object()
	jobs, refused := got.items("jobs"), got.items("refused")
	if len(jobs) != 2 || len(refused) != 1 {
		t.Fatalf("got %v, want two jobs and a line that is none", got)
	}

	if first := jobs[0]; first.text("line") != "3" || first.text("text") != "0 3 * * * backup.sh" ||
		first.text("words") != "at 03:00 every day, Europe/Berlin" {
		t.Errorf("the first job: got %v", first)
	}

	if is := jobs[0].text(
		"job"); is != "map[app:shop command:backup.sh description:the shop name:backup owner:ops@example.com schedule:0 3 * * * timezone:Europe/Berlin user:www-data]" {
		t.Errorf("the first job is %s", is)
	}

	if refused[0].text("line") != "4" || !strings.Contains(refused[0].text("message"), "@reboot") {
		t.Errorf("refused is %v, want line 4", refused[0])
	}
	if n := s.call("GET", "/api/v1/jobs", nil).want(200).object().items("items"); len(n) != 0 {
		t.Errorf("there are %v: reading a crontab makes no jobs", n)
	}

	all := []any{jobs[0]["job"], jobs[1]["job"]}
	if n := s.call("POST", "/api/v1/apply", object{"jobs": all}).want(200).object().text("changed"); n != "2" {
		t.Errorf("%s were applied, want 2", n)
	}

	// A crontab whose jobs would be far larger than its text is refused.
	for _, text := range []string{"A=" + strings.Repeat("x", 32000) + "\n" + strings.Repeat("@daily a\n", 22900),
		strings.Repeat("x\n", 1001)} {
		if why := s.call("POST", "/api/v1/crontab",
			object{"text": text}).want(422).complaint("text"); !strings.Contains(why, "more than 1000 lines") {
			t.Errorf("%.10q: got %s", text, why)
		}
	}

	if n := len(s.call("POST", "/api/v1/crontab",
		object{"text": strings.Repeat("@daily a\n", 1000)}).want(200).object().items("jobs")); n != 1000 {
		t.Errorf("%d jobs, want as many as can be applied", n)
	}

	large := s.call("POST", "/api/v1/crontab",
		object{"text": "A=" + strings.Repeat("x", 32000) + "\n" + strings.Repeat("@daily a\n", 900)}).want(413)
	if !strings.Contains(large.body, "The jobs of the crontab need more than") {
		t.Errorf("got %s", large.body)
	}

	long := s.call("POST", "/api/v1/crontab",
		object{"text": "SHELL=/bin/" + strings.Repeat("x", 30000) + "\n@daily a\n"}).want(200)
	if note := long.object().items("jobs")[0].text("notes"); !strings.Contains(note, "SHELL is /bin/x") ||
		len(note) > 2000 {
		t.Errorf("a note has %d bytes: %.100s", len(note), note)
	}

	// With a user column, in Chinese, by a viewer.
	r := s.as(s.newToken("looks", auth.Viewer)).call("POST", "/api/v1/crontab",
		object{"text": "0 3 * * * root backup.sh\n", "system": true}, "Accept-Language", "zh")
	first := r.want(200).object().items("jobs")[0]
	if first.text("job", "user") != "root" || first.text("job", "command") != "backup.sh" ||
		first.text("words") == "at 03:00 every day, UTC" {
		t.Errorf("of a system: got %v", first)
	}
}
