package view

import (
	"time"

	"go-crontab/job"
)

// AlertMeta holds the server's metadata of a rule or a channel.
type AlertMeta struct {
	Version int64     `json:"version" doc:"A number that grows with each change."`
	Created time.Time `json:"created" doc:"When it was created."`
	Updated time.Time `json:"updated" doc:"When it was last changed."`
	By      string    `json:"updated_by" doc:"Who changed it last."`
	Error   string    `json:"error,omitempty" doc:"Why the stored definition cannot be read. Replace it with PUT."`
}

// AlertRule is a rule as clients see it.
type AlertRule struct {
	job.AlertRule
	AlertMeta
}

// AlertChannel is a channel as clients see it.
type AlertChannel struct {
	job.AlertChannel
	AlertMeta
	Held string `json:"held,omitempty" doc:"For a heartbeat: why it is not called now."`

	Failing *ChannelFailing `json:"failing,omitempty" doc:"Present if the channel takes no messages now: three tries in a row failed, or a message was given up. A delivered message or a change of the channel ends it."`
}

// ChannelFailing says how a channel fails.
type ChannelFailing struct {
	Tries int64     `json:"tries" doc:"How many tries failed since the last delivered message."`
	Since time.Time `json:"since" doc:"When the first of their messages was created."`
	Said  string    `json:"said,omitempty" doc:"Why the latest one failed. Absent for callers limited to apps."`
}

// ChannelTest is the result of a channel test.
type ChannelTest struct {
	Sent   bool   `json:"sent" doc:"Whether the channel accepted the message."`
	Said   string `json:"said" doc:"The response of the channel, or why the message could not be sent."`
	TookMS int64  `json:"took_ms" doc:"How long the test took."`
}

// RuleTest is the result of a rule test.
type RuleTest struct {
	Channels []RuleTestChannel `json:"channels" doc:"The result for each channel of the rule."`
}

// RuleTestChannel is the result of a rule test for one of the channels.
type RuleTestChannel struct {
	Channel string `json:"channel" doc:"The name of the channel."`
	ChannelTest
}

// Alert is an alert as clients see it.
type Alert struct {
	ID       string         `json:"id" doc:"Its id."`
	State    string         `json:"state" enum:"firing,resolved" doc:"Whether it is still firing."`
	Rule     string         `json:"rule" doc:"The rule that found it."`
	Event    job.AlertEvent `json:"event" doc:"The event that it is about."`
	Severity string         `json:"severity" doc:"The severity of the rule."`
	App      string         `json:"app,omitempty" doc:"The app of the job. Absent if it is about the cluster."`
	JobID    string         `json:"job_id,omitempty" doc:"The id of the job."`
	Job      string         `json:"job,omitempty" doc:"The name of the job."`
	Owner    string         `json:"owner,omitempty" doc:"The owner of the job."`
	Node     string         `json:"node,omitempty" doc:"The node that executed the run, or that has a problem."`
	Run      string         `json:"run,omitempty" doc:"The latest run that it is about."`
	Summary  string         `json:"summary" doc:"What happened, in one line."`
	First    time.Time      `json:"first" doc:"When it began."`
	Last     time.Time      `json:"last" doc:"When it was last seen."`
	Seen     int64          `json:"seen" doc:"How often it was seen."`
	Told     *time.Time     `json:"told,omitempty" doc:"When a message about it was last created. Absent if there was none."`
	Silence  string         `json:"silence,omitempty" doc:"The id of the silence that suppressed the message."`
	Resolved *time.Time     `json:"resolved,omitempty" doc:"When it ended."`
	Why      string         `json:"resolved_by,omitempty" doc:"Why it ended."`
}

// AlertSummary summarises all alerts and messages.
type AlertSummary struct {
	Firing    int64            `json:"firing" doc:"How many alerts are firing, of those that the caller may read."`
	States    map[string]int64 `json:"deliveries" doc:"The number of messages of the last 30 days, by state. At most 10000 of each state are counted. Empty for callers limited to apps, who see no messages."`
	Lost      int64            `json:"lost" doc:"How many events were dropped since the cluster was created, because there were too many."`
	Templates int64            `json:"template_failures" doc:"How many messages used the built-in text since then, because a template failed."`
}

// Delivery is a message of an alert as clients see it.
type Delivery struct {
	ID       string          `json:"id" doc:"Its id."`
	Key      string          `json:"key" doc:"The key by which a receiver can recognise a message that arrives twice."`
	Kind     string          `json:"kind" enum:"alert,test,ping,heartbeat" doc:"The kind of message. 'ping' is the call of a job's ping."`
	Channel  string          `json:"channel,omitempty" doc:"The channel that it goes to."`
	Rule     string          `json:"rule,omitempty" doc:"The rule that it comes from."`
	Target   string          `json:"target,omitempty" doc:"The recipient if it is not the channel's: the owner of a job, or the host of a ping."`
	State    string          `json:"state" enum:"pending,sending,sent,failed,silenced,suppressed" doc:"The state of the delivery. 'suppressed': its channel was disabled or deleted, or had too many messages."`
	Attempts int             `json:"attempts" doc:"How many times it was tried."`
	Next     *time.Time      `json:"next,omitempty" doc:"When it is tried next."`
	Events   int64           `json:"events" doc:"How many events it contains."`
	Items    []job.AlertItem `json:"items" doc:"The first events, at most 20."`
	Said     string          `json:"said,omitempty" doc:"The last response of the channel, or why sending failed."`
	Created  time.Time       `json:"created" doc:"When it was created."`
	Updated  time.Time       `json:"updated" doc:"When it last changed."`
}

// Silence is a silence as clients see it.
type Silence struct {
	ID      string    `json:"id" doc:"Its id."`
	App     string    `json:"app,omitempty" doc:"Only alerts about jobs of this app. Absent: all alerts, including those about the cluster."`
	Job     string    `json:"job,omitempty" doc:"Only alerts about this job of the app."`
	Rule    string    `json:"rule,omitempty" doc:"Only alerts of this rule."`
	Until   time.Time `json:"until" doc:"When it ends."`
	Reason  string    `json:"reason" doc:"The reason that was given."`
	By      string    `json:"by" doc:"Who created it."`
	Created time.Time `json:"created" doc:"When it was created."`
	Over    bool      `json:"over" doc:"Whether it has ended."`
}
