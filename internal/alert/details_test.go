package alert

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"go-crontab/job"
)

// TestDetails: a message says where and when a run was due, whose job it is, what its output ended
// with, and how to see more.
func TestDetails(t *testing.T) {
	f := setUp(t)
	h := newHook(t)
	f.channel(job.AlertChannel{Name: "hook", Type: job.ChannelWebhook, URL: h.URL + "/hook", Wait: 1000})
	f.channel(job.AlertChannel{Name: "slack", Type: job.ChannelSlack, URL: h.URL + "/slack", Wait: 1000})
	f.rule(job.AlertRule{Name: "ops", On: []job.AlertEvent{job.AlertFailed, job.AlertRecovered},
		Channels: []string{"hook", "slack"}})
	a := f.job("shop", "load orders", `,"timezone":"Asia/Kolkata"`)
	s := f.session()
	e, send := f.evaluator(s), f.sender(s)
	send.Outside.cfg.PublicURL = "https://cron.example.com/"
	f.step(e)

	run := f.run(a, job.Failed, 0)
	due := job.MicrosOf(time.Date(2027, 1, 30, 2, 0, 0, 0, time.UTC))
	head := "first\n" + strings.Repeat("a line\n", 20)
	tail := "10 %\r99 %\r100 %\n\x1b[31m<b>*disk* full</b>\x1b[0m ```\n\n"
	f.exec("UPDATE run SET due = ?, output_kept = ?, output_bytes = ? WHERE id = ?", int64(due)+345678,
		len(head+tail), len(head+tail), run)
	f.exec("INSERT INTO output (run_id, head, tail) VALUES (?, ?, ?)", run, head, tail)
	f.step(e)
	f.now += second
	f.send(send)

	const command = "go-crontab run logs "
	for i, m := range h.seen() {
		id := job.RunID(run)
		text, output := m.Text, "a line\n100 %\n<b>*disk* full</b> ```"
		if h.paths[i] == "POST /slack" {
			var v struct{ Text string }
			if err := json.Unmarshal([]byte(h.raw[i]), &v); err != nil {
				t.Fatal(err)
			}
			text, output = v.Text, "a line\n100 %\n&lt;b&gt;*disk* full&lt;/b&gt; '''\n```"
		}
		for _, want := range []string{"ALERT shop/load orders failed: exit code 1\n",
			"Scheduled: 2027-01-30 07:30:00 +05:30 (Asia/Kolkata)\n", "Node: n1\n", "Owner: ann@example.com\n",
			"Page: https://cron.example.com/runs/" + id + "\n", "More: " + command + id + "\n", output,
			"(rule ops, severity error)"} {
			if !strings.Contains(text, want) {
				t.Errorf("%s: got %q, want %q in it", h.paths[i], text, want)
			}
		}
		if strings.Contains(text, "first") || strings.Contains(text, "\x1b") {
			t.Errorf("%s: got %q, want only the last lines, as text", h.paths[i], text)
		}
		if h.paths[i] != "POST /hook" {
			continue
		}
		it := m.Items[0]
		if it.Due != "2027-01-30T07:30:00+05:30" || it.Zone != "Asia/Kolkata" || it.Command != command+id ||
			it.URL != "https://cron.example.com/runs/"+id || strings.Count(it.Output, "\n") != outputLines-1 ||
			m.Title != "ALERT shop/load orders failed: exit code 1" {
			t.Errorf("got %+v", it)
		}
	}

	// The end of an alert shows no output, and no severity.
	f.run(a, job.Succeeded, 0)
	f.step(e)
	f.now += second
	f.send(send)
	if n := len(h.seen()); n != 4 {
		t.Fatalf("got %d messages, want 4", n)
	}
	for i, m := range h.seen()[2:] {
		if h.paths[2+i] != "POST /hook" {
			continue
		}
		if !strings.HasPrefix(m.Text, "OK shop/load orders: it succeeded again (failed since ") ||
			!strings.HasSuffix(m.Text, "(rule ops)") || strings.Contains(m.Text, "output") ||
			!strings.Contains(m.Text, "More: go-crontab job history 'shop/load orders'") {
			t.Errorf("got %q", m.Text)
		}
	}
}

// TestManyDetails: a message about many runs has the details of the first ones, and the scheduled
// times of the others.
func TestManyDetails(t *testing.T) {
	m := &job.AlertMessage{Rule: "ops", Severity: "error", Count: 7, More: 2}
	for range 5 {
		m.Items = append(m.Items, job.AlertItem{What: "fired", Summary: "shop/a failed", Seen: 1,
			Due: "2027-01-30T07:30:00+05:30", Output: "the end"})
	}
	title, text := builtIn(m, false)
	if title != "ALERT shop/a failed (and 6 more)" || strings.Count(text, "the end") != detailed ||
		strings.Count(text, "ALERT shop/a failed, scheduled 2027-01-30 07:30:00 +05:30\n") != 2 ||
		!strings.HasSuffix(text, "… and 2 more\n(rule ops, severity error)") {
		t.Errorf("got %q and\n%s", title, text)
	}
}

// TestLastLines: output becomes a few lines of plain text.
func TestLastLines(t *testing.T) {
	for text, want := range map[string]string{
		"":                             "",
		"\n\n":                         "",
		"a\r\nb\r\n":                   "a\nb",
		"\x1b]0;title\x07a\x1b[1;31mb": "ab",
		"a\x00\x08b\tc":                "ab\tc",
		"\xff\xfeé":                    "é",
	} {
		if got := lastLines(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
	if got := lastLines(strings.Repeat("é", 5000)); len(got) > outputBytes+len("…") || !strings.HasPrefix(got, "…é") {
		t.Errorf("got %d bytes: %.20q", len(got), got)
	}
}
