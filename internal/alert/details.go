package alert

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"go-crontab/job"
)

const (
	detailed    = 3    // the number of first events in a message that are shown with all details
	outputLines = 10   // lines of a run's output in a message
	outputBytes = 1024 // bytes of these lines
	lineBytes   = 500  // bytes of an event's summary in a text

	describeTime = 5 * time.Second // less than settleTime: meanwhile, no other node takes the message
)

// describe completes the items of a message: the scheduled time, the last lines of output, and the
// console page and the command that show more. If these cannot be read, the message is sent
// without them.
func (s *Sender) describe(ctx context.Context, l *letter) {
	s.Outside.link(l.items)

	var ids, shown []int64
	for i := range l.items {
		id, err := job.ParseRunID(l.items[i].Run)
		if err != nil {
			continue
		}
		if ids = append(ids, id); i < detailed && l.items[i].What != "resolved" {
			shown = append(shown, id)
		}
	}
	if len(ids) == 0 {
		return
	}

	bounded, cancel := context.WithTimeout(ctx, describeTime)
	defer cancel()
	if err := s.readRuns(bounded, l.items, ids, shown); err != nil && ctx.Err() == nil {
		s.Log.Warn("cannot read the runs of an alert message, sending it without details",
			"message", l.ID, "error", err)
	}
}

// readRuns sets the fields of items that come from their runs. It sets the output only for the
// runs in shown.
func (s *Sender) readRuns(ctx context.Context, items []job.AlertItem, ids, shown []int64) error {
	runs, err := s.DB.RunsInAnyState(ctx, ids)
	if err != nil {
		return err
	}

	var jobIDs []int64
	for _, r := range runs {
		jobIDs = append(jobIDs, r.JobID)
	}
	jobs, err := s.DB.AlertJobs(ctx, jobIDs)
	if err != nil {
		return err
	}

	for i := range items {
		id, err := job.ParseRunID(items[i].Run)
		r, there := runs[id]
		if err != nil || !there {
			continue
		}
		zone := jobs[r.JobID].Timezone
		items[i].Due, items[i].Zone = whenIn(r.Due, zone), zone
	}

	withOutput, err := s.DB.RunsWithOutput(ctx, shown)
	for i := range withOutput {
		r := &withOutput[i]
		pieces := r.Output.Pieces()
		if r.Executing {
			written, err := s.DB.Chunks(ctx, r.Launch, 0)
			if err != nil {
				return err
			}
			pieces = job.Join(written)
		}
		if len(pieces) == 0 {
			continue
		}
		text, _ := job.PiecesText(pieces, 0, true)
		for at := range items[:min(len(items), detailed)] {
			if it := &items[at]; it.Run == job.RunID(r.ID) && it.What != "resolved" {
				it.Output = lastLines(text)
			}
		}
	}
	return err
}

// link sets the address and the command with which people see more of each item.
func (o *Outside) link(items []job.AlertItem) {
	for i := range items {
		it := &items[i]
		page := "/alerts"
		switch {
		case it.What == "test":
			it.Command = "go-crontab alert ls"
		case it.Run != "" && it.What != "resolved":
			page, it.Command = "/runs/"+it.Run, "go-crontab run logs "+it.Run
			if it.Event == job.AlertLateStart {
				it.Command = "go-crontab run show " + it.Run // it may have no output yet
			}
		case it.Job != "":
			page, it.Command = "/jobs/"+it.JobID, "go-crontab job history "+quote(it.App+"/"+it.Job)
		default:
			it.Command = "go-crontab doctor"
		}
		if o.cfg.PublicURL != "" {
			it.URL = strings.TrimRight(o.cfg.PublicURL, "/") + page
		}
	}
}

// plain matches words that need no quotes in a shell.
var plain = regexp.MustCompile(`^[\w./:@%+-]+$`)

func quote(word string) string {
	if plain.MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// whenIn formats an instant in a time zone, to the second. An unknown zone is UTC.
func whenIn(at job.Micros, zone string) string {
	t := at.Time()
	if loc, err := job.LoadZone(zone); zone != "" && err == nil {
		t = t.In(loc)
	}
	return t.Format(time.RFC3339)
}

// escapes matches the sequences with which programs colour their output.
var escapes = regexp.MustCompile(`\x1b(\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(\x07|\x1b\\)|[@-Z\\^_])`)

// lastLines returns the last lines of output as plain text.
func lastLines(text string) string {
	text = text[max(0, len(text)-16*outputBytes):]
	text = escapes.ReplaceAllString(strings.ToValidUTF8(text, ""), "")

	var lines []string
	for _, line := range strings.Split(text, "\n") {
		// A progress bar overwrites its line: keep its last state.
		line = strings.TrimRight(line, "\r")
		line = line[strings.LastIndexByte(line, '\r')+1:]
		line = strings.Map(func(r rune) rune {
			if unicode.IsControl(r) && r != '\t' {
				return -1
			}
			return r
		}, line)
		if line = strings.TrimRight(line, " \t"); line != "" {
			lines = append(lines, line)
		}
	}

	lines = lines[max(0, len(lines)-outputLines):]
	return lastBytes(strings.Join(lines, "\n"), outputBytes)
}

// lastBytes returns the last bytes of a text.
func lastBytes(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return "…" + strings.ToValidUTF8(text[len(text)-most:], "")
}

// oneLine turns a text that people chose freely into one line. So the text cannot imitate other
// lines of a message.
func oneLine(text string, most int) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && !unicode.IsSpace(r) {
			return -1
		}
		return r
	}, text)
	return cutText(strings.Join(strings.Fields(text), " "), most)
}

// extent says how many events a text shows, and with how many details.
type extent struct {
	events   int // events that are listed
	detailed int // events with all details
	output   int // bytes of output in the details of an event
}

// extents are tried in this order until a text is short enough. The output is cut first, because
// the console page and the command also show it.
var extents = []extent{
	{shown, detailed, outputBytes}, {shown, detailed, 200}, {shown, detailed, 0},
	{shown, 1, 0}, {shown / 2, 1, 0}, {shown / 4, 1, 0}, {1, 1, 0},
}

// builtIn returns the title and text of a message whose rule has no templates. If possible, title
// and text together have at most the given number of bytes.
func builtIn(m *job.AlertMessage, fenced bool, most int) (title, text string) {
	for _, x := range extents {
		if title, text = compose(m, fenced, x); len(title)+1+len(text) <= most {
			break
		}
	}
	return title, text
}

func compose(m *job.AlertMessage, fenced bool, x extent) (title, text string) {
	if len(m.Items) == 0 {
		return "go-crontab", fmt.Sprintf("%d events", m.Count)
	}

	title = cutText(line(&m.Items[0]), 200)
	if m.Count > 1 {
		title += fmt.Sprintf(" (and %d more)", m.Count-1)
	}

	var b strings.Builder
	listed := m.Items[:min(len(m.Items), x.events)]
	for i := range listed {
		it := &listed[i]
		b.WriteString(line(it))
		if i >= x.detailed {
			if it.Due != "" {
				b.WriteString(", scheduled " + spaced(it.Due))
			}
			b.WriteByte('\n')
			continue
		}

		b.WriteByte('\n')
		writeDetails(&b, it, fenced, x.output)
		if len(listed) > 1 {
			b.WriteByte('\n')
		}
	}

	if more := m.More + int64(len(m.Items)-len(listed)); more > 0 {
		fmt.Fprintf(&b, "… and %d more\n", more)
	}
	if m.Rule != "" {
		severity := ", severity " + m.Severity
		if !slices.ContainsFunc(m.Items, func(it job.AlertItem) bool { return it.What != "resolved" }) {
			severity = "" // nothing is wrong any more
		}
		fmt.Fprintf(&b, "(rule %s%s)", m.Rule, severity)
	}
	return title, strings.TrimSpace(b.String())
}

// writeDetails writes the details of an event, with up to output bytes of its output.
func writeDetails(b *strings.Builder, it *job.AlertItem, fenced bool, output int) {
	add := func(label, value string) {
		if value != "" {
			b.WriteString(label + ": " + value + "\n")
		}
	}

	due := spaced(it.Due)
	if it.Zone != "" && due != "" {
		due += " (" + it.Zone + ")"
	}
	add("Scheduled", due)
	add("Node", it.Node)
	add("Owner", it.Owner)
	add("Page", it.URL)
	add("More", it.Command)

	if it.Output == "" || output == 0 {
		return
	}
	last := lastBytes(it.Output, output)
	if fenced {
		last = "```\n" + strings.ReplaceAll(last, "```", "'''") + "\n```"
	}
	b.WriteString("Last lines of output:\n" + last + "\n")
}

// spaced makes an RFC 3339 time easier to read: 2027-01-30 03:00:00 +01:00.
func spaced(at string) string {
	t, err := time.Parse(time.RFC3339Nano, at)
	if err != nil {
		return at
	}
	return t.Format("2006-01-02 15:04:05 Z07:00")
}

// line describes an event in one line.
func line(it *job.AlertItem) string {
	text := cutText(it.Summary, lineBytes)
	if it.What == "resolved" {
		about := "the cluster"
		switch {
		case it.Job != "":
			about = it.App + "/" + it.Job
		case it.Node != "":
			about = "the node " + it.Node
		case it.App != "":
			about = "the app " + it.App
		}
		text = fmt.Sprintf("%s: %s (%s since %s)", about, text, it.Event, since(it))
	}

	if it.Seen > 1 {
		text += " [" + strconv.FormatInt(it.Seen, 10) + " times since " + since(it) + "]"
	}
	return mark(it.What) + " " + text
}

// since says when an alert began to fire, in the time zone of its job.
func since(it *job.AlertItem) string {
	t, err := time.Parse(time.RFC3339Nano, it.Since)
	if err != nil {
		return it.Since
	}
	return spaced(whenIn(job.MicrosOf(t), it.Zone))
}

// mark returns the first word of an event's line.
func mark(what string) string {
	switch what {
	case "resolved":
		return "OK"
	case "repeated":
		return "STILL"
	case "test":
		return "TEST"
	case "info":
		return "INFO"
	}
	return "ALERT"
}
