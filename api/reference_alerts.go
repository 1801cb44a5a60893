package api

import (
	"net/http"

	"go-crontab/api/view"
	"go-crontab/internal/alert"
	"go-crontab/job"
)

var (
	ofRuleParam     = textParam{declared{"rule", "Only entries of the rule with this name.", "ops"}, job.MaxName}
	ofChannelParam  = textParam{declared{"channel", "Only messages to the channel with this name.", "chat"}, job.MaxName}
	alertStateParam = wordParam{
		declared{"state", "Only alerts in this state.", "firing"}, []string{"firing", "resolved"},
	}
	deliveryStateParam = wordParam{declared{"state", "Only messages in this state.", "failed"}, alert.DeliveryStates}
	silencesOverParam  = wordParam{
		declared{"over", "Whether to list silences that have ended as well.", "true"}, []string{"true", "false"},
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
		about: "What rules have found, the latest first. An alert is one problem: it fires once, is counted again when " +
			"it is seen again, and ends at some time. Alerts are kept for 30 days after their end. Alerts of apps that the " +
			"caller cannot read are left out; for callers limited to apps, so are alerts that count failures " +
			"of several apps.",
		query:   []parameter{ofAppParam, ofJobParam, ofRuleParam, alertStateParam, limitParam, pageParam},
		replies: found[view.Page[view.Alert]]("A page of alerts."),
	}
	getAlertDoc = operation{
		id: "getAlert", tag: tagAlerts, summary: "Show an alert",
		about:   "Its state, when it began, and what was last seen.",
		replies: found[view.Alert]("The alert."), problems: []kind{notFound},
	}
	alertSummaryDoc = operation{
		id: "getAlertSummary", tag: tagAlerts, summary: "Count alerts and messages",
		about:   "How many alerts are firing, the results of messages, and how many events were dropped.",
		replies: found[view.AlertSummary]("The counts."),
	}
	listDeliveriesDoc = operation{
		id: "listDeliveries", tag: tagAlerts, summary: "List messages",
		about: "Sent and waiting messages to channels, the latest first; with `state`, by when they entered " +
			"it. Each has the last response of its channel. Messages are kept for 30 days, those of heartbeats and pings " +
			"for one day.",
		query:   []parameter{ofChannelParam, ofRuleParam, deliveryStateParam, limitParam, pageParam},
		replies: found[view.Page[view.Delivery]]("A page of messages."),
	}
	listRulesDoc = operation{
		id: "listAlertRules", tag: tagAlerts, summary: "List rules", about: "In the order of their creation.",
		query: []parameter{limitParam, pageParam}, replies: found[view.Page[view.AlertRule]]("A page of rules."),
	}
	getRuleDoc = operation{
		id: "getAlertRule", tag: tagAlerts, summary: "Show a rule", about: "The events that it finds, and its channels.",
		replies: found[view.AlertRule]("The rule."), problems: []kind{notFound},
	}
	putRuleDoc = operation{
		id: "putAlertRule", tag: tagAlerts, matched: true, unless: true, summary: "Create or replace a rule",
		about: "The rule finds what happens from now on. Sending the same body again changes nothing.",
		body: &requestBody{
			of: of[view.AlertRule](), about: "The rule.",
			example: `{"on": ["failed", "recovered"], "apps": ["billing"], "channels": ["chat"]}`,
		},
		replies: []reply{
			{status: http.StatusOK, about: "The current rule.", of: of[view.AlertRule]()}, {
				status: http.StatusCreated, about: "The rule or channel was created.", of: of[view.AlertRule](),
			},
		},
		problems: []kind{unknownOutcome},
	}
	deleteRuleDoc = operation{
		id: "deleteAlertRule", tag: tagAlerts, summary: "Delete a rule",
		about:   "Its alerts end, without a message.",
		replies: gone, problems: []kind{notFound, inUse, unknownOutcome},
	}
	listChannelsDoc = operation{
		id: "listAlertChannels", tag: tagAlerts, summary: "List channels",
		about: "In the order of their creation. Only admins of the cluster see more of an address than " +
			"its host.",
		query: []parameter{limitParam, pageParam}, replies: found[view.Page[view.AlertChannel]]("A page of channels."),
	}
	getChannelDoc = operation{
		id: "getAlertChannel", tag: tagAlerts, summary: "Show a channel", about: "Where and how it sends messages.",
		replies: found[view.AlertChannel]("The channel."), problems: []kind{notFound},
	}
	putChannelDoc = operation{
		id: "putAlertChannel", tag: tagAlerts, matched: true, unless: true, summary: "Create or replace a channel",
		about: "Secrets are referenced as `{{secret.NAME}}`, and must be for all apps. Sending the same body again " +
			"changes nothing.",
		body: &requestBody{
			of: of[view.AlertChannel](), about: "The channel.",
			example: `{"type": "webhook", "url": "https://example.com/alerts"}`,
		},
		replies: []reply{
			{status: http.StatusOK, about: "The current channel.", of: of[view.AlertChannel]()}, {
				status: http.StatusCreated, about: "The rule or channel was created.", of: of[view.AlertChannel](),
			},
		},
		problems: []kind{unknownOutcome},
	}
	deleteChannelDoc = operation{
		id: "deleteAlertChannel", tag: tagAlerts, summary: "Delete a channel", about: "A channel that rules use cannot " +
			"be deleted.",
		replies: gone, problems: []kind{notFound, inUse, unknownOutcome},
	}
	testChannelDoc = operation{
		id: "testAlertChannel", tag: tagAlerts, once: true, summary: "Send a test message to a channel",
		about: "The node that is asked sends it now, and answers with the channel's response. A disabled channel is " +
			"tested as well.",
		body: emptyBody,
		replies: []reply{{status: http.StatusOK, about: "The result, also if the test failed.",
			of: of[view.ChannelTest]()}}, problems: []kind{notFound, noSession, unknownOutcome},
	}
	tryChannelDoc = operation{
		id: "testUnsavedAlertChannel", tag: tagAlerts, once: true, summary: "Test a channel before it is saved",
		about: "The node that is asked sends a test message to the channel of the body now, and saves nothing.",
		body: &requestBody{
			of: of[view.AlertChannel](), about: "The channel, as for PUT, and a name for the message.",
			example: `{"type": "webhook", "url": "https://example.com/alerts"}`,
		},
		replies: []reply{{status: http.StatusOK, about: "The result, also if the test failed.",
			of: of[view.ChannelTest]()}}, problems: []kind{noSession, unknownOutcome},
	}
	tryRuleDoc = operation{
		id: "testUnsavedAlertRule", tag: tagAlerts, once: true, summary: "Test a rule before it is saved",
		about: "The node that is asked sends a sample of an alert of the rule to each of its channels now, " +
			"with the rule's templates, and saves nothing. A failing template counts as a failed test.",
		body: &requestBody{
			of: of[view.AlertRule](), about: "The rule, as for PUT, and a name for the message.",
			example: `{"on": ["failed", "recovered"], "apps": ["billing"], "channels": ["chat"]}`,
		},
		replies: []reply{{status: http.StatusOK, about: "The results, also if tests failed.",
			of: of[view.RuleTest]()}}, problems: []kind{noSession, unknownOutcome},
	}
	listSilencesDoc = operation{
		id: "listAlertSilences", tag: tagAlerts, summary: "List silences",
		about: "Silences that have not ended, in the order of their creation. Silences of apps that the caller cannot read " +
			"are left out.",
		query:   []parameter{silencesOverParam, limitParam, pageParam},
		replies: found[view.Page[view.Silence]]("A page of silences."),
	}
	addSilenceDoc = operation{
		id: "addAlertSilence", tag: tagAlerts, once: true, summary: "Create a silence",
		about: "Alerts that it covers are recorded, but not sent. An alert that still fires when the silence ends is " +
			"sent then. " +
			"This needs the role operator in the app, or of the cluster for a silence of all apps.",
		body: &requestBody{
			of: of[silenceBody](), about: "The alerts to silence, the end, and the reason.",
			example: `{"app": "billing", "until": "2h", "reason": "the database moves"}`,
		},
		replies: []reply{{status: http.StatusCreated, about: "The silence.", of: of[view.Silence](),
			headers: []string{"Location"}}}, problems: []kind{unknownOutcome},
	}
	getSilenceDoc = operation{
		id: "getAlertSilence", tag: tagAlerts, summary: "Show a silence", about: "Ended silences are shown as well.",
		replies: found[view.Silence]("The silence."), problems: []kind{notFound},
	}
	endSilenceDoc = operation{
		id: "endAlertSilence", tag: tagAlerts, summary: "End a silence",
		about:    "The silence ends at once. An ended silence stays unchanged.",
		replies:  []reply{{status: http.StatusNoContent, about: "The silence has ended."}},
		problems: []kind{notFound, unknownOutcome},
	}
)
