package api

import (
	"go-crontab/job"
)

// ruleFields reads the fields of an alert rule, except its name.
func ruleFields(f *fields) (r job.AlertRule) {
	f.text("description", &r.Description)
	f.flag("disabled", &r.Disabled)

	var on []string
	f.texts("on", &on)
	for _, e := range on {
		r.On = append(r.On, job.AlertEvent(e))
	}

	f.texts("apps", &r.Apps)
	f.texts("jobs", &r.Jobs)
	f.text("owner", &r.Owner)
	f.textMap("labels", &r.Labels)
	f.texts("channels", &r.Channels)
	f.text("severity", &r.Severity)
	f.duration("repeat", &r.Repeat)
	f.duration("late_start", &r.LateStart)
	f.duration("late_finish", &r.LateFinish)
	f.duration("never_ran", &r.NeverRan)

	f.inner("failures", func(f *fields) {
		r.Failures = &job.AlertFailing{}
		f.integer("count", &r.Failures.Count)
		f.duration("within", &r.Failures.Within)
		f.text("per", &r.Failures.Per)
	})

	f.duration("node_gone", &r.NodeGone)
	f.inner("backlog", func(f *fields) {
		r.Backlog = &job.AlertOverdue{}
		f.count("tasks", &r.Backlog.Tasks, 10_000)
		f.duration("older_than", &r.Backlog.OlderThan)
	})

	f.duration("clock_skew", &r.ClockSkew)
	f.text("title", &r.Title)
	f.text("text", &r.Text)
	return r
}

// channelFields reads the fields of an alert channel, except its name.
func channelFields(f *fields) (c job.AlertChannel) {
	f.text("description", &c.Description)
	f.text("type", (*string)(&c.Type))
	f.flag("disabled", &c.Disabled)
	f.text("url", &c.URL)
	f.textMap("headers", &c.Headers)
	f.text("sign", &c.Sign)
	f.text("body", &c.Body)
	f.text("routing_key", &c.RoutingKey)

	f.inner("email", func(f *fields) {
		c.Email = &job.AlertEmail{}
		f.text("server", &c.Email.Server)
		f.text("tls", &c.Email.TLS)
		f.text("user", &c.Email.User)
		f.text("password", &c.Email.Password)
		f.text("from", &c.Email.From)
		f.texts("to", &c.Email.To)
		f.flag("to_owner", &c.Email.ToOwner)
	})

	f.duration("every", &c.Every)
	f.duration("wait", &c.Wait)
	f.count("rate", &c.Rate, 600)
	f.duration("timeout", &c.Timeout)
	return c
}

// flag reads a boolean. If it is absent, the value is false.
func (f *fields) flag(name string, to *bool) {
	b := new(bool)
	f.boolean(name, &b)
	*to = *b
}
