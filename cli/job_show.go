package cli

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"go-crontab/job"

	"github.com/spf13/cobra"
)

func jobShow(c *console) *cobra.Command {
	cmd := &cobra.Command{
		Use: "show JOB", Short: "Show everything about a job", Args: wants(1, 1, jobArgument),
		Long: `Show everything about a job: its definition with defaults, its state, how long its records are kept
and by which rule, and the alert rules that cover it. Formats other than table show only the job, as
the API returns it.`,
		Example:           "  go-crontab job show backup\n  go-crontab job show ops/ping -o yaml",
		ValidArgsFunction: completeJobs(c),
	}

	r := newRemote(c, cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		j, raw, err := findJob(cmd.Context(), r, args[0])
		if err != nil {
			return err
		}
		return r.object(c, raw, j.fullName(), func() error {
			d := jobCard(&j, c.now())
			if err := r.concerning(cmd.Context(), &d, &j); err != nil {
				return err
			}
			return r.card(d)
		})
	}

	return cmd
}

// card shows an object as lines with a name and a value. Empty values are left out.
type card []struct {
	name  string
	value cell
}

func (d *card) add(name, value string, colours ...colour) {
	if value == "" {
		return
	}

	c := cell{text: value}
	if len(colours) > 0 {
		c.colour = colours[0]
	}

	*d = append(*d, struct {
		name  string
		value cell
	}{name, c})
}

// card prints a card. Values with several lines are indented.
func (r *remote) card(d card) error {
	paint := painter(colourful(r.out))
	widest := 0
	for _, f := range d {
		widest = max(widest, displayWidth(f.name))
	}

	for _, f := range d {
		name := f.name
		for line := range strings.Lines(f.value.text) {
			r.printf("%s%s  %s\n", paint(faint, name), strings.Repeat(" ", widest-displayWidth(name)),
				paint(f.value.colour, plain(strings.TrimRight(line, "\n"))))
			name = ""
		}
	}

	return nil
}

func jobCard(j *jobView, now time.Time) card {
	var d card
	d.add("job", j.fullName(), bold)
	d.add("id", fmt.Sprintf("%s, version %d", j.ID, j.Version))
	if j.Health != nil {
		health := healthCell(j.Health)
		d.add("health", health.text, health.colour)
	}
	d.add("status", string(j.Status), statusColour(j.Status))
	if j.Pause != nil {
		d.add("paused", whatPaused(j.Pause)+" "+pauseWords(j.Pause, now), yellow)
	}

	d.add("error", j.Error, red)
	d.add("description", j.Description)
	d.add("owner", j.Owner)

	for i, k := range slices.Sorted(maps.Keys(j.Labels)) {
		name := ""
		if i == 0 {
			name = "labels"
		}
		d.add(name, k+"="+j.Labels[k])
	}

	d.add("schedule", scheduleInFull(j, now.Location()))
	d.add("followers", strings.Join(j.Followers, ", "))
	d.add("next due", both(j.NextDue, now))
	d.add("last due", both(j.LastDue, now))
	waitingCard(&d, j.Waiting, now)
	d.add("command", j.Command)
	httpCard(&d, j.HTTP)
	d.add("handler", j.Handler)
	d.add("payload", j.Payload)
	d.add("selector", j.Selector)
	commandCard(&d, &j.CommandOptions)
	d.add("timeout", orElse(lengthOf(j.Timeout), "none"))
	d.add("overlap", overlapInFull(j))
	d.add("group", j.Group)
	if j.Priority != 0 {
		d.add("priority", fmt.Sprint(j.Priority))
	}

	if j.StartDeadline != 0 {
		d.add("deadline", "starts at most "+j.StartDeadline.String()+" late")
	}

	d.add("params", paramsInFull(j.Params))
	d.add("misfire", misfireInFull(j))
	d.add("retry", retryInFull(j))
	d.add("on lost", j.OnLost)
	if p := j.Ping; p != nil {
		words := p.URL + " after a success"
		if p.FailURL != "" {
			words += ",\n" + p.FailURL + " after a failure"
		}
		d.add("ping", words)
	}

	d.add("output", outputInFull(j.Output))
	if j.KeepJob != 0 {
		d.add("keep job", "deleted "+j.KeepJob.String()+" after it has finished")
	}
	d.add("removed", both(j.RemoveAt, now))
	d.add("created", both(&j.Created, now))
	if !j.Updated.Equal(j.Created) {
		d.add("updated", both(&j.Updated, now))
	}

	return d
}

func outputInFull(o job.Capture) string {
	var words []string
	if o.Keep != 0 {
		words = append(words, "keeps "+o.Keep.String()+" of each run")
	}
	if o.MarkStderr {
		words = append(words, "marks stderr")
	}
	return strings.Join(words, ", ")
}

func scheduleInFull(j *jobView, viewer *time.Location) string {
	var s strings.Builder
	s.WriteString(j.when(viewer))
	if j.Timezone == "UTC" {
		s.WriteString(" UTC")
	}
	if j.Start != nil {
		s.WriteString(" from " + absolute(j.Start, viewer))
	}
	if j.End != nil {
		s.WriteString(" until " + absolute(j.End, viewer))
	}

	if a := j.After; a != nil {
		fmt.Fprintf(&s, " (on %s", a.On)
		if len(a.Jobs) > 1 {
			s.WriteString(", " + a.Match)
		}
		if a.Within != 0 {
			s.WriteString(" within " + a.Within.String())
		}
		s.WriteString(")")
	}
	if j.MaxFires > 0 {
		fmt.Fprintf(&s, ", at most %d times", j.MaxFires)
	}
	if j.Jitter != 0 {
		s.WriteString(", shifted by up to " + j.Jitter.String())
	}
	if len(j.Calendars) > 0 {
		s.WriteString(", by calendar " + strings.Join(j.Calendars, ", "))
	}

	switch j.OnClosed {
	case job.ClosedNext, job.ClosedPrevious:
		fmt.Fprintf(&s, ", moved to the %s open day", j.OnClosed)
	}
	if j.Weeks != nil {
		fmt.Fprintf(&s, ", %s", j.Weeks)
	}

	return s.String()
}

func retryInFull(j *jobView) string {
	r := j.Retry
	switch {
	case r.Attempts <= 1:
		return "none"
	case r.Factor > 1:
		return fmt.Sprintf("%d attempts, %s apart, then each pause %g times as long, at most %s", r.Attempts, r.Backoff,
			r.Factor, r.MaxBackoff)
	}
	return fmt.Sprintf("%d attempts, %s apart", r.Attempts, r.Backoff)
}

func overlapInFull(j *jobView) string {
	if j.Queue == 0 {
		return string(j.Overlap)
	}
	return fmt.Sprintf("%s, at most %d waiting", j.Overlap, j.Queue)
}

func misfireInFull(j *jobView) string {
	m := &j.Misfire
	words := string(m.Policy)
	if m.MaxCount > 0 {
		words += fmt.Sprintf(", the last %d", m.MaxCount)
	}
	if m.MaxAge != 0 {
		words += fmt.Sprintf(", at most %s late", m.MaxAge)
	}
	if m.After != 0 {
		words += fmt.Sprintf(", when more than %s late", m.After)
	}

	return words
}

func orElse[S ~string](s, otherwise S) S {
	if s == "" {
		return otherwise
	}
	return s
}

// lengthOf formats a duration; "" for none.
func lengthOf(d job.Duration) string {
	if d == 0 {
		return ""
	}
	return d.String()
}
