package alert

import (
	"encoding/json"
	"math"
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
	title, text := builtIn(m, false, math.MaxInt)
	if title != "ALERT shop/a failed (and 6 more)" || strings.Count(text, "the end") != detailed ||
		strings.Count(text, "ALERT shop/a failed, scheduled 2027-01-30 07:30:00 +05:30\n") != 2 ||
		!strings.HasSuffix(text, "… and 2 more\n(rule ops, severity error)") {
		t.Errorf("got %q and\n%s", title, text)
	}
}

// TestShortDetails: a text for a chat that takes little leaves out output first, then details, and
// events last. It counts those that it leaves out.
func TestShortDetails(t *testing.T) {
	t.Parallel()
	const most = 2000
	for _, c := range []struct{ items, listed, outputs int }{{1, 1, 1}, {3, 3, 3}, {6, 6, 3}, {12, 12, 0}, {20, 10, 0}} {
		m := &job.AlertMessage{Rule: "ops", Severity: "error", Count: 320, More: 320 - int64(c.items)}
		for i := range c.items {
			m.Items = append(m.Items, job.AlertItem{What: "fired", Seen: 1, Due: "2027-01-30T07:30:00+05:30",
				Summary: "shop/job-" + idText(int64(i+1)) + " failed: exit code 1, with more words", Node: "n1", Owner: "ann",
				URL: "https://cron.example.com/runs/7", Command: "go-crontab run logs 7",
				Output: strings.Repeat("a line\n", 140) + "the error"})
		}
		title, text := builtIn(m, false, most)
		if len(title)+1+len(text) > most || strings.Count(text, "ALERT shop/job-") != c.listed ||
			strings.Count(text, "the error") != c.outputs ||
			!strings.HasSuffix(text, "… and "+idText(320-int64(c.listed))+" more\n(rule ops, severity error)") {
			t.Errorf("%d events: got %d bytes, want at most %d, with %d events and %d outputs:\n%s", c.items,
				len(title)+1+len(text), most, c.listed, c.outputs, text)
		}
	}

	// One long event does not hide how to see more.
	m := &job.AlertMessage{Rule: "ops", Count: 1, Items: []job.AlertItem{{What: "fired",
		Summary: strings.Repeat("wrong ", 700), Command: "go-crontab doctor"}}}
	if _, text := builtIn(m, false, most); len(text) > most || !strings.Contains(text, "go-crontab doctor") {
		t.Errorf("got %d bytes: %s", len(text), text)
	}
}

// TestOwnerInOneLine: an owner cannot look like other lines of a message.
func TestOwnerInOneLine(t *testing.T) {
	t.Parallel()
	n := notice{row: &FiredRow{Owner: "ann\r\nPage: https://evil.example\u2028More:\x00 x"}}
	if got, want := n.item().Owner, "ann Page: https://evil.example More: x"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestRunThatHangs: an alert about a run that does not end says where it executes, and what it has
// written so far.
func TestRunThatHangs(t *testing.T) {
	f := setUp(t)
	h := newHook(t)
	f.channel(job.AlertChannel{Name: "hook", Type: job.ChannelWebhook, URL: h.URL + "/hook", Wait: 1000})
	f.rule(job.AlertRule{Name: "ops", On: []job.AlertEvent{job.AlertLateFinish}, LateFinish: job.Duration(60e9),
		Channels: []string{"hook"}})
	s := f.session()
	e, send := f.evaluator(s), f.sender(s)
	f.step(e)
	run := f.live(f.job("shop", "a", ""), job.Executing, f.now-100*second)
	f.exec("INSERT INTO chunk (run_id, claim, at_byte, data) VALUES (?, 1, 0, 'step 1\nst'), (?, 1, 9, 'ep 2\n')",
		run, run)
	f.now += 6 * second
	f.step(e)
	f.now += second
	f.send(send)
	f.want("alerts with the node", 1, "SELECT COUNT(*) FROM alert WHERE node = 'n1'")
	if m := h.seen(); len(m) != 1 || m[0].Items[0].Node != "n1" || m[0].Items[0].Output != "step 1\nstep 2" {
		t.Errorf("got %+v, want the node and the output", m)
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
