package api

import (
	"net/http"

	"go-crontab/internal/alert"
	"go-crontab/job"
)

var (
	ofRuleParam     = textParam{declared{"rule", "Only of the rule of this name.", "ops"}, job.MaxName}
	ofChannelParam  = textParam{declared{"channel", "Only to the channel of this name.", "chat"}, job.MaxName}
	alertStateParam = wordParam{
		declared{"state", "Only those that fire, or that are over.", "firing"}, []string{"firing", "resolved"},
	}
	deliveryStateParam = wordParam{declared{"state", "Only those that are so.", "failed"}, alert.DeliveryStates}
	silencesOverParam  = wordParam{
		declared{"over", "Whether silences that have ended are listed as well.", "true"}, []string{"true", "false"},
	}
)

// silenceBody describes the body for Server.addSilence.
type silenceBody struct {
	App    string `json:"app,omitempty" doc:"Only alerts about jobs of this app. Absent: all alerts, including those about the cluster."`
	Job    string `json:"job,omitempty" doc:"Only alerts about this job of the app."`
	Rule   string `json:"rule,omitempty" doc:"Only alerts of this rule."`
	Until  string `json:"until" doc:"When it ends: a time, or a duration such as 2h."`
	Reason string `json:"reason" doc:"The reason, so that others know why there are no messages."`
}

var (
	listAlertsDoc = operation{
		id: "listAlerts", tag: tagAlerts, summary: "List alerts",
		about: "What rules have found, the latest first. An alert is one trouble: it fires once, is counted when " +
			"it is seen again, and is over at some time. They are kept for 30 days after that. Those of apps of " +
			"which one may see nothing are left out, and for who is limited to some apps those that count failures " +
			"of several.",
		query:   []parameter{ofAppParam, ofJobParam, ofRuleParam, alertStateParam, limitParam, pageParam},
		replies: found[page[alertView]]("A page of alerts."),
	}
	getAlertDoc = operation{
		id: "getAlert", tag: tagAlerts, summary: "Show an alert",
		about:   "Whether it fires, since when, and what was seen last.",
		replies: found[alertView]("The alert."), problems: []kind{notFound},
	}
	alertSummaryDoc = operation{
		id: "getAlertSummary", tag: tagAlerts, summary: "Count alerts and messages",
		about:   "How many alerts fire, what became of messages, and what could not be told.",
		replies: found[alertSummaryView]("The counts."),
	}
	listDeliveriesDoc = operation{
		id: "listDeliveries", tag: tagAlerts, summary: "List messages",
		about: "What was sent to channels, or is to be, the latest first, those of one state by when they came " +
			"into it, with what the channels answered. They are kept for 30 days, those of heartbeats and pings " +
			"for one.",
		query:   []parameter{ofChannelParam, ofRuleParam, deliveryStateParam, limitParam, pageParam},
		replies: found[page[deliveryView]]("A page of messages."),
	}
	listRulesDoc = operation{
		id: "listAlertRules", tag: tagAlerts, summary: "List rules", about: "In the order of their creation.",
		query: []parameter{limitParam, pageParam}, replies: found[page[alertRuleView]]("A page of rules."),
	}
	getRuleDoc = operation{
		id: "getAlertRule", tag: tagAlerts, summary: "Show a rule", about: "Of what it tells, and where.",
		replies: found[alertRuleView]("The rule."), problems: []kind{notFound},
	}
	putRuleDoc = operation{
		id: "putAlertRule", tag: tagAlerts, matched: true, unless: true, summary: "Make or replace a rule",
		about: "It finds what happens from then on. The same body twice changes nothing.",
		body: &requestBody{
			of: of[alertRuleView](), about: "The rule.",
			example: `{"on": ["failed", "recovered"], "apps": ["billing"], "channels": ["chat"]}`,
		},
		replies: []reply{
			{status: http.StatusOK, about: "The rule as it is now.", of: of[alertRuleView]()}, {
				status: http.StatusCreated, about: "It is new.", of: of[alertRuleView](),
			},
		},
		problems: []kind{unknownOutcome},
	}
	deleteRuleDoc = operation{
		id: "deleteAlertRule", tag: tagAlerts, summary: "Delete a rule",
		about:   "What it has found is over; nobody is told that.",
		replies: gone, problems: []kind{notFound, inUse, unknownOutcome},
	}
	listChannelsDoc = operation{
		id: "listAlertChannels", tag: tagAlerts, summary: "List channels",
		about: "In the order of their creation. Who is not admin of the cluster is shown no more of an address than " +
			"its host.",
		query: []parameter{limitParam, pageParam}, replies: found[page[alertChannelView]]("A page of channels."),
	}
	getChannelDoc = operation{
		id: "getAlertChannel", tag: tagAlerts, summary: "Show a channel", about: "Where messages go, and how.",
		replies: found[alertChannelView]("The channel."), problems: []kind{notFound},
	}
	putChannelDoc = operation{
		id: "putAlertChannel", tag: tagAlerts, matched: true, unless: true, summary: "Make or replace a channel",
		about: "Secrets are named, as `{{secret.NAME}}`, and must be for all apps. The same body twice changes nothing.",
		body: &requestBody{
			of: of[alertChannelView](), about: "The channel.",
			example: `{"type": "webhook", "url": "https://example.com/alerts"}`,
		},
		replies: []reply{
			{status: http.StatusOK, about: "The channel as it is now.", of: of[alertChannelView]()}, {
				status: http.StatusCreated, about: "It is new.", of: of[alertChannelView](),
			},
		},
		problems: []kind{unknownOutcome},
	}
	deleteChannelDoc = operation{
		id: "deleteAlertChannel", tag: tagAlerts, summary: "Delete a channel", about: "Only one that no rule names.",
		replies: gone, problems: []kind{notFound, inUse, unknownOutcome},
	}
	testChannelDoc = operation{
		id: "testAlertChannel", tag: tagAlerts, once: true, summary: "Send a test message to a channel",
		about: "Now, from the node that is asked, and tells what the channel answered. A channel that is disabled is " +
			"tested, too.",
		body: emptyBody,
		replies: []reply{{status: http.StatusOK, about: "What became of it; also when it failed.",
			of: of[testedView]()}}, problems: []kind{notFound, noSession, unknownOutcome},
	}
	listSilencesDoc = operation{
		id: "listAlertSilences", tag: tagAlerts, summary: "List silences",
		about: "Those that have not ended, in the order of their creation. Those of apps of which one may see " +
			"nothing are left out.",
		query:   []parameter{silencesOverParam, limitParam, pageParam},
		replies: found[page[silenceView]]("A page of silences."),
	}
	addSilenceDoc = operation{
		id: "addAlertSilence", tag: tagAlerts, once: true, summary: "Begin a silence",
		about: "Alerts that it covers are recorded, but not told. One that still fires when it ends is told then. It " +
			"takes role operator of the app, or of the cluster if it is for all.",
		body: &requestBody{
			of: of[silenceBody](), about: "What to keep silent about, until when, and why.",
			example: `{"app": "billing", "until": "2h", "reason": "the database moves"}`,
		},
		replies: []reply{{status: http.StatusCreated, about: "The silence.", of: of[silenceView](),
			headers: []string{"Location"}}}, problems: []kind{unknownOutcome},
	}
	getSilenceDoc = operation{
		id: "getAlertSilence", tag: tagAlerts, summary: "Show a silence", about: "Also one that has ended.",
		replies: found[silenceView]("The silence."), problems: []kind{notFound},
	}
	endSilenceDoc = operation{
		id: "endAlertSilence", tag: tagAlerts, summary: "End a silence",
		about:    "At once. One that has ended stays as it is.",
		replies:  []reply{{status: http.StatusNoContent, about: "It has ended, or had already."}},
		problems: []kind{notFound, unknownOutcome},
	}
)
