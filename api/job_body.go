package api

import (
	"context"
	"fmt"

	"go-crontab/job"
)

// jobBody is a job as a client describes it.
type jobBody struct {
	spec   job.Spec
	paused *bool // nil: not mentioned
}

// jobFields reads the fields of a job.
func jobFields(f *fields) jobBody {
	var b jobBody
	s := &b.spec

	// Identity and schedule.
	f.text("app", &s.App)
	f.text("name", &s.Name)
	f.text("description", &s.Description)
	f.text("owner", &s.Owner)
	f.textMap("labels", &s.Labels)
	scheduleFields(f, s)

	// What it runs.
	f.text("command", &s.Command)
	httpFields(f, &s.HTTP)
	f.text("handler", &s.Handler)
	f.text("payload", &s.Payload)
	f.text("selector", &s.Selector)
	f.duration("timeout", &s.Timeout)
	commandFields(f, &s.CommandOptions)
	paramFields(f, &s.Params)

	// How its runs are handled.
	f.text("overlap", (*string)(&s.Overlap))
	f.count("queue", &s.Queue, job.MaxQueue)
	f.text("group", &s.Group)
	f.integer("priority", &s.Priority)
	f.duration("start_deadline", &s.StartDeadline)

	f.inner("misfire", func(f *fields) {
		f.text("policy", (*string)(&s.Misfire.Policy))
		f.duration("after", &s.Misfire.After)
		f.count("max_count", &s.Misfire.MaxCount, job.MaxMaxCount)
		f.duration("max_age", &s.Misfire.MaxAge)
	})

	f.duration("keep_job", &s.KeepJob)
	f.text("on_lost", &s.OnLost)
	f.inner("retry", func(f *fields) {
		f.count("attempts", &s.Retry.Attempts, job.MaxAttempts)
		f.some("backoff", &s.Retry.Backoff)
		f.number("factor", &s.Retry.Factor)
		f.some("max_backoff", &s.Retry.MaxBackoff)
		f.duration("jitter", &s.Retry.Jitter)
		f.outcomes("on", &s.Retry.On)
	})

	f.inner("ping", func(f *fields) {
		s.Ping = &job.Ping{}
		f.text("url", &s.Ping.URL)
		f.text("fail_url", &s.Ping.FailURL)
	})

	f.inner("keep", func(f *fields) { keepFields(f, &s.Keep) })
	f.inner("output", func(f *fields) {
		f.size("keep", &s.Output.Keep)
		f.flag("mark_stderr", &s.Output.MarkStderr)
	})
	f.boolean("paused", &b.paused)
	return b
}

const maxFires = 1_000_000_000

// scheduleFields reads the fields that say when a job is due.
func scheduleFields(f *fields, s *job.Spec) {
	f.text("schedule", &s.Schedule)
	f.texts("schedules", &s.Schedules)
	f.duration("every", &s.Every)
	f.instant("at", &s.At)
	f.duration("delay", &s.Delay)
	f.inner("after", func(f *fields) {
		s.After = &job.After{}
		f.texts("jobs", &s.After.Jobs)
		f.text("on", &s.After.On)
		f.text("match", &s.After.Match)
		f.duration("within", &s.After.Within)
	})
	f.flag("manual", &s.Manual)
	f.text("timezone", &s.Timezone)
	f.instant("start", &s.Start)
	f.instant("end", &s.End)

	fires := int(s.MaxFires)
	f.count("max_fires", &fires, maxFires)
	s.MaxFires = int64(fires)

	f.duration("jitter", &s.Jitter)
	f.texts("calendars", &s.Calendars)
	f.text("on_closed", (*string)(&s.OnClosed))
	f.inner("weeks", func(f *fields) {
		s.Weeks = &job.Weeks{}
		f.count("every", &s.Weeks.Every, job.MaxWeeks)
		f.text("from", &s.Weeks.From)
	})
}

// newJob reads the body of a POST.
func newJob(o map[string]any) (jobBody, error) {
	f := newFields(o)
	b := jobFields(f)
	f.refuse(readOnly...)
	return b, f.done()
}

// wholeJob reads the body of a PUT.
func wholeJob(o map[string]any) (jobBody, error) {
	f := newFields(o)
	b := jobFields(f)
	f.ignore(readOnly...)
	return b, f.done()
}

// patched applies the body of a PATCH to a definition.
func patched(old *job.Spec, patch map[string]any) (jobBody, error) {
	// Minimal leaves out defaults. Otherwise a default of the old kind of job would stay when the
	// patch makes this another kind.
	text, err := old.Minimal()
	if err != nil {
		return jobBody{}, err
	}

	target, err := parseObject(context.Background(), text)
	if err != nil {
		return jobBody{}, fmt.Errorf("the stored definition cannot be read: %w", err)
	}

	b, err := wholeJob(mergePatch(target, patch).(map[string]any))

	// A client that removes the interval does not want to keep its start.
	if _, given := patch["start"]; !given && old.Every != 0 && b.spec.Every == 0 {
		b.spec.Start = nil
	}
	return b, err
}

// complete fills in the defaults of a definition and validates it.
func (s *Server) complete(spec *job.Spec) error {
	now, err := s.now()
	if err != nil {
		return err
	}
	spec.Defaults(now)
	return spec.Validate()
}
