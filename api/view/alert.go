package view

import (
	"time"

	"go-crontab/job"
)

// AlertMeta holds the server's metadata of a rule or a channel.
type AlertMeta struct {
	Version int64     `json:"version" doc:"Grows with each change."`
	Created time.Time `json:"created" doc:"When it was created."`
	Updated time.Time `json:"updated" doc:"When it was changed last."`
	By      string    `json:"updated_by" doc:"By whom."`
	Error   string    `json:"error,omitempty" doc:"Why what is stored cannot be read. Put it again."`
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
	Held string `json:"held,omitempty" doc:"Of a heartbeat: why it is not called now."`
}

// ChannelTest is the result of a channel test.
type ChannelTest struct {
	Sent   bool   `json:"sent" doc:"Whether the channel took the message."`
	Said   string `json:"said" doc:"What it answered, or why the message could not be sent."`
	TookMS int64  `json:"took_ms" doc:"How long that took."`
}

// Alert is an alert as clients see it.
type Alert struct {
	ID       string         `json:"id" doc:"Its id."`
	State    string         `json:"state" enum:"firing,resolved" doc:"Whether it goes on."`
	Rule     string         `json:"rule" doc:"The rule that found it."`
	Event    job.AlertEvent `json:"event" doc:"What it is about."`
	Severity string         `json:"severity" doc:"Of the rule."`
	App      string         `json:"app,omitempty" doc:"Of the job. Absent: it is about the cluster."`
	JobID    string         `json:"job_id,omitempty" doc:"The job."`
	Job      string         `json:"job,omitempty" doc:"Its name."`
	Owner    string         `json:"owner,omitempty" doc:"Its owner."`
	Node     string         `json:"node,omitempty" doc:"The node: which executed the run, or which is in trouble."`
	Run      string         `json:"run,omitempty" doc:"The run that was seen last."`
	Summary  string         `json:"summary" doc:"What has happened, in one line."`
	First    time.Time      `json:"first" doc:"When it began."`
	Last     time.Time      `json:"last" doc:"When it was seen last."`
	Seen     int64          `json:"seen" doc:"How often."`
	Told     *time.Time     `json:"told,omitempty" doc:"When a message about it was last made. Absent: none was."`
	Silence  string         `json:"silence,omitempty" doc:"The id of the silence for which none was."`
	Resolved *time.Time     `json:"resolved,omitempty" doc:"When it was over."`
	Why      string         `json:"resolved_by,omitempty" doc:"Why it is over."`
}

// AlertSummary summarises all alerts and messages.
type AlertSummary struct {
	Firing    int64            `json:"firing" doc:"How many alerts fire."`
	States    map[string]int64 `json:"deliveries" doc:"How many messages there are of the last 30 days, by their states. Of one state no more than 10000 are counted."`
	Lost      int64            `json:"lost" doc:"How many events could not be told since the cluster was made, because there was too much."`
	Templates int64            `json:"template_failures" doc:"How many messages were sent with the built-in text since then, because a template failed."`
}

// Delivery is a message as clients see it.
type Delivery struct {
	ID       string          `json:"id" doc:"Its id."`
	Key      string          `json:"key" doc:"What whoever gets it twice can tell it by."`
	Kind     string          `json:"kind" enum:"alert,test,ping,heartbeat" doc:"What it is: 'ping' is the call of a job's ping."`
	Channel  string          `json:"channel,omitempty" doc:"To which channel it goes."`
	Rule     string          `json:"rule,omitempty" doc:"Of which rule."`
	Target   string          `json:"target,omitempty" doc:"To whom, where the channel does not say: the owner of a job. Of a ping, the host."`
	State    string          `json:"state" enum:"pending,sending,sent,failed,silenced,suppressed" doc:"Where it is. 'suppressed': its channel was disabled or gone, or got too much."`
	Attempts int             `json:"attempts" doc:"How often it was tried."`
	Next     *time.Time      `json:"next,omitempty" doc:"When it is tried, or tried again."`
	Events   int64           `json:"events" doc:"Of how many events it tells."`
	Items    []job.AlertItem `json:"items" doc:"The first of them, at most 20."`
	Said     string          `json:"said,omitempty" doc:"What the channel answered last, or why it failed."`
	Created  time.Time       `json:"created" doc:"When it was made."`
	Updated  time.Time       `json:"updated" doc:"When something of it changed last."`
}

// Silence is a silence as clients see it.
type Silence struct {
	ID      string    `json:"id" doc:"Its id."`
	App     string    `json:"app,omitempty" doc:"Only alerts of this app's jobs. Absent: all, those of the cluster included."`
	Job     string    `json:"job,omitempty" doc:"Only those of this job of the app."`
	Rule    string    `json:"rule,omitempty" doc:"Only those that this rule finds."`
	Until   time.Time `json:"until" doc:"When it ends."`
	Reason  string    `json:"reason" doc:"Why it was begun."`
	By      string    `json:"by" doc:"Who began it."`
	Created time.Time `json:"created" doc:"When."`
	Over    bool      `json:"over" doc:"Whether it has ended."`
}
