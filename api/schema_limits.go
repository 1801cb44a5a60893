package api

import (
	"reflect"

	"go-crontab/api/openapi"
	"go-crontab/api/view"
	"go-crontab/job"
)

// limitField adds the limits of a request field, and values that its Go type does not show.
func limitField(owner reflect.Type, name string, use openapi.Use, s *openapi.Schema) {
	if use == openapi.Answer {
		if words := answerWords[owner][name]; words != nil {
			s.Ref, s.Type, s.Enum = "", openapi.Types{openapi.String}, openapi.Words(words...).Enum
		}
		return
	}

	if owner == of[calendarBody]() {
		owner = of[job.CalendarSpec]()
	}
	if owner == of[newJobBody]() || owner == of[previewBody]() || owner == of[manifestJob]() {
		owner = of[view.Job]()
	}
	if limit := limits[owner][name]; limit != nil {
		limit(s)
	}
}

// A limit adds a constraint to a schema.
type limit func(*openapi.Schema)

func fromTo(least, most float64) limit {
	return func(s *openapi.Schema) { s.Minimum, s.Maximum = openapi.Bound(least), openapi.Bound(most) }
}

// upTo limits the characters of a text. It also suits a text with a limit in bytes: a text never
// has more characters than bytes.
func upTo(most int) limit    { return func(s *openapi.Schema) { s.MaxLength = most } }
func items(most int) limit   { return func(s *openapi.Schema) { s.MaxItems = most } }
func entries(most int) limit { return func(s *openapi.Schema) { s.MaxProperties = most } }

func aName(s *openapi.Schema) { s.MinLength, s.MaxLength = 1, job.MaxName }

func oneOf(words ...string) limit {
	return func(s *openapi.Schema) { s.Enum = openapi.Words(words...).Enum }
}

// orText lets a list also take texts.
func orText(s *openapi.Schema) {
	s.Items = &openapi.Schema{
		AnyOf: []*openapi.Schema{
			s.Items, {
				Type: openapi.Types{openapi.String}, Description: "Short form: `2027-02-06` or `2027-02-05..2027-02-11`.",
			},
		},
	}
	s.MaxItems = job.MaxCalendarDays
}

// limits are the limits of request fields that a schema can express. Other limits are described in
// words.
var limits = map[reflect.Type]map[string]limit{
	of[view.Job](): {
		"name": aName, "app": upTo(job.MaxName), "description": upTo(job.MaxText), "owner": upTo(job.MaxText),
		"labels":    entries(job.MaxLabels),
		"schedules": items(job.MaxSchedules), "max_fires": fromTo(1, maxFires), "calendars": items(job.MaxCalendars),
		"on_closed": oneOf(string(job.ClosedSkip), string(job.ClosedNext), string(job.ClosedPrevious)),
		"n":         fromTo(1, maxDue),
		"command":   upTo(job.MaxCommand), "stdin": upTo(job.MaxStdin), "env": entries(job.MaxEnv),
		"params":  entries(job.MaxParams),
		"payload": upTo(job.MaxPayload), "handler": upTo(job.MaxHandlerKey),
		"success_codes":   func(s *openapi.Schema) { fromTo(0, 255)(s.Items) },
		"skip_exit_codes": func(s *openapi.Schema) { fromTo(1, 255)(s.Items) },
		"selector":        upTo(job.MaxSelector), "queue": fromTo(1, job.MaxQueue), "group": upTo(job.MaxName),
		"priority": fromTo(-job.MaxPriority, job.MaxPriority),
		"on_lost":  oneOf(job.LostFail, job.LostRerun),
	},
	of[job.Weeks](): {"every": fromTo(1, job.MaxWeeks)},
	of[job.HTTP](): {
		"url": upTo(job.MaxURL), "headers": entries(job.MaxHeaders), "body": upTo(job.MaxHTTPBody),
		"expect":     items(job.MaxExpect),
		"body_limit": fromTo(1, job.MaxBodyLimit), "redirects": fromTo(0, job.MaxRedirects),
	},
	of[job.HTTPTLS](): {
		"ca": upTo(job.MaxPEM), "client_cert": upTo(job.MaxPEM), "client_key": upTo(job.MaxSecretName),
	},
	of[job.HTTPSign](): {"secret": upTo(job.MaxSecretName)},
	of[secretBody](): {
		"value": func(s *openapi.Schema) { s.MinLength, s.MaxLength = 1, job.MaxSecret }, "app": upTo(job.MaxName),
	},
	of[job.After](): {
		"jobs": items(job.MaxUpstreams), "on": oneOf(job.OnSuccess, job.OnFailure, job.OnEnd),
		"match": oneOf(job.MatchAll, job.MatchAny),
	},
	of[job.Param](): {
		"enum": items(job.MaxParamEnum), "secret": upTo(job.MaxSecretName), "description": upTo(job.MaxText),
	},
	of[job.Misfire]():    {"max_count": fromTo(1, job.MaxMaxCount)},
	of[job.Retry]():      {"attempts": fromTo(1, job.MaxAttempts)},
	of[job.Keep]():       {"runs": fromTo(1, job.MostKept)},
	of[view.Retention](): {"runs": fromTo(1, job.MostKept)},
	of[view.Group]():     {"slots": fromTo(1, job.MaxSlots)},
	of[view.AppLimits](): {
		"jobs": fromTo(1, job.MostLimit), "runs_per_minute": fromTo(1, job.MostLimit),
		"waiting": fromTo(1, job.MostLimit),
	},
	of[job.GroupSpec](): {"name": aName, "slots": fromTo(1, job.MaxSlots)},
	of[manifestBody](): {
		"groups": items(job.MaxApplyGroups), "calendars": items(job.MaxApplyCalendars),
		"channels": items(job.MaxAlertChannels), "rules": items(job.MaxAlertRules),
		"retention": items(job.MaxApplyScopes), "pauses": items(job.MaxApplyScopes), "jobs": items(job.MaxApplyJobs),
	},
	of[job.RetentionSpec](): {"app": upTo(job.MaxName), "runs": fromTo(1, job.MostKept)},
	of[job.PauseSpec]():     {"app": upTo(job.MaxName), "reason": upTo(job.MaxReason)},
	of[view.AlertRule]():    ruleLimits,
	of[job.AlertRule]():     ruleLimits,
	of[job.AlertFailing]():  {"count": fromTo(2, 1000)},
	of[job.AlertOverdue]():  {"tasks": fromTo(1, 10_000)},
	of[view.AlertChannel](): channelLimits,
	of[job.AlertChannel]():  channelLimits,
	of[job.AlertEmail]():    {"user": upTo(256), "to": items(50)},
	of[silenceBody](): {
		"app": upTo(job.MaxName), "job": upTo(job.MaxName), "rule": upTo(job.MaxName),
		"reason": func(s *openapi.Schema) { s.MinLength, s.MaxLength = 1, 512 },
	},
	of[job.Ping]():     {"url": upTo(job.MaxURL), "fail_url": upTo(job.MaxURL)},
	of[backfillBody](): {"parallel": fromTo(1, job.MaxParallel), "params": entries(job.MaxParams)},
	of[paramsBody]():   {"params": entries(job.MaxParams)},
	of[reasonBody]():   {"reason": upTo(job.MaxReason)},
	of[pauseBody]():    {"reason": upTo(job.MaxReason)},
	of[job.CalendarSpec](): {
		"name": aName, "description": upTo(job.MaxText), "exclude": orText, "include": orText,
	},
	of[job.CalendarHours](): {"only": items(job.MaxCalendarHours), "except": items(job.MaxCalendarHours)},
	of[job.CalendarDay]():   {"note": upTo(job.MaxCalendarNote)},
}

// ruleLimits and channelLimits are the limits of alert rules and channels.
var (
	ruleLimits = map[string]limit{
		"name": aName, "description": upTo(job.MaxText), "owner": upTo(job.MaxText), "labels": entries(job.MaxLabels),
		"apps": items(job.MaxRuleLists), "jobs": items(job.MaxRuleLists),
		"channels": items(20), "title": upTo(job.MaxTemplate), "text": upTo(job.MaxTemplate),
	}
	channelLimits = map[string]limit{
		"name": aName, "description": upTo(job.MaxText), "url": upTo(job.MaxURL), "headers": entries(job.MaxHeaders),
		"body": upTo(job.MaxTemplate), "rate": fromTo(1, 600),
	}
)

// answerWords lists the values of fields in answers. The Go types of these fields lack some values:
// the fields of a job are empty if its definition cannot be read.
var answerWords = map[reflect.Type]map[string][]string{
	of[view.Explanation](): {"cause": causes()},
	of[view.Job](): {
		"overlap": {
			string(job.OverlapSkip), string(job.OverlapQueue), string(job.OverlapReplace), string(job.OverlapAllow), "",
		},
		"on_lost": {job.LostFail, job.LostRerun, ""},
	},
}

// needed are the required fields of some request bodies. Their types also describe answers or whole
// definitions.
var needed = map[reflect.Type][]string{
	of[newJobBody]():  {"name"},
	of[manifestJob](): {"name"},
	of[view.Job]():    nil, // some routes have the name in the path
	of[view.Group]():  nil, // slots, or a rate

	of[view.AlertRule]():    {"on", "channels"},
	of[view.AlertChannel](): {"type"},
	of[calendarBody]():      nil,
}
