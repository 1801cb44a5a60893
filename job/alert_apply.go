package job

import (
	"encoding/json"
	"fmt"
)

// Diff lists the fields in which two rules with defaults differ. Either may be nil.
func (r *AlertRule) Diff(other *AlertRule) []Change { return diff(flatOf(r), flatOf(other)) }

// Diff lists the fields in which two channels with defaults differ. Either may be nil.
func (c *AlertChannel) Diff(other *AlertChannel) []Change { return diff(flatOf(c), flatOf(other)) }

func flatOf[T any](v *T) map[string]json.RawMessage {
	if v == nil {
		return nil
	}
	return flatten(v)
}

// Minimal returns the rule without default values, as people would write it.
func (r AlertRule) Minimal() AlertRule {
	if r.Severity == "error" {
		r.Severity = ""
	}

	drop := func(d *Duration, is Duration) {
		if *d == is {
			*d = 0
		}
	}

	drop(&r.Repeat, DefaultAlertRepeat)
	drop(&r.LateStart, DefaultAlertLateStart)
	drop(&r.NodeGone, DefaultAlertNodeGone)
	drop(&r.ClockSkew, DefaultAlertClockSkew)
	if f := r.Failures; f != nil && f.Per == "job" {
		r.Failures = &AlertFailing{Count: f.Count, Within: f.Within}
	}

	if b := r.Backlog; b != nil && *b == (AlertOverdue{DefaultBacklogTasks, DefaultBacklogAge}) {
		r.Backlog = nil
	}

	return r
}

// Minimal returns the channel without default values, as people would write it.
func (c AlertChannel) Minimal() AlertChannel {
	drop := func(d *Duration, is Duration) {
		if *d == is {
			*d = 0
		}
	}

	drop(&c.Wait, DefaultChannelWait)
	drop(&c.Timeout, DefaultChannelTimeout)
	drop(&c.Every, DefaultHeartbeat)
	if c.Rate == DefaultChannelRate {
		c.Rate = 0
	}

	if c.Type == ChannelPagerDuty && c.URL == PagerDutyURL {
		c.URL = ""
	}

	if c.Email != nil && c.Email.TLS == "starttls" {
		e := *c.Email
		e.TLS = ""
		c.Email = &e
	}

	return c
}

func (a *Apply) checkAlerts(p *Problems) {
	seen := map[string]int{}
	for i := range a.Channels {
		a.Channels[i].Defaults()
		p.within(fmt.Sprintf("channels[%d]", i), a.Channels[i].Validate())
		twice(p, seen, a.Channels[i].Name, "channels", i)
	}

	seen = map[string]int{}
	for i := range a.Rules {
		a.Rules[i].Defaults()
		p.within(fmt.Sprintf("rules[%d]", i), a.Rules[i].Validate())
		twice(p, seen, a.Rules[i].Name, "rules", i)
	}
}
