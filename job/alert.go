package job

import (
	"fmt"
	"net/mail"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"go-crontab/job/problem"
)

// AlertEvent is a kind of event that alerts can report.
type AlertEvent string

// The events. Events before AlertFailures concern one job. AlertFailures and all later events
// concern several jobs or the cluster.
const (
	AlertFailed     AlertEvent = "failed"      // a due time failed in all its attempts
	AlertStarted    AlertEvent = "started"     // a run was started
	AlertSucceeded  AlertEvent = "succeeded"   // a due time succeeded
	AlertRecovered  AlertEvent = "recovered"   // an alert of the rule has ended
	AlertLost       AlertEvent = "lost"        // the node of a run vanished
	AlertLateStart  AlertEvent = "late_start"  // a due time was not started in time
	AlertLateFinish AlertEvent = "late_finish" // a due time did not end in time
	AlertNeverRan   AlertEvent = "never_ran"   // a due time was missed, or the job has not run for too long
	AlertFailures   AlertEvent = "failures"    // too many failures within a time
	AlertNodeGone   AlertEvent = "node_gone"   // a node vanished and has not come back
	AlertBacklog    AlertEvent = "backlog"     // too many due times are overdue
	AlertClockSkew  AlertEvent = "clock_skew"  // the clock of a node differs from MySQL's

	AlertDuplicateNames  AlertEvent = "duplicate_names"  // several live nodes have the same name
	AlertFolderRefused   AlertEvent = "folder_refused"   // a node cannot apply its folder of job files
	AlertExpiring        AlertEvent = "expiring"         // a token or a certificate expires soon, or has expired
	AlertOIDCUnreachable AlertEvent = "oidc_unreachable" // a node cannot reach the OIDC issuer
	AlertBackupOld       AlertEvent = "backup_old"       // no new backup was reported in time
)

// AlertEvents lists all events in the order of the docs.
func AlertEvents() []AlertEvent {
	return []AlertEvent{
		AlertFailed, AlertRecovered, AlertLost, AlertLateStart, AlertLateFinish, AlertNeverRan, AlertFailures,
		AlertNodeGone, AlertBacklog, AlertClockSkew, AlertDuplicateNames, AlertFolderRefused, AlertExpiring,
		AlertOIDCUnreachable, AlertBackupOld, AlertStarted, AlertSucceeded,
	}
}

// AlertTroubles lists the events about the cluster that last until a person acts.
func AlertTroubles() []AlertEvent {
	return []AlertEvent{
		AlertDuplicateNames, AlertFolderRefused, AlertExpiring, AlertOIDCUnreachable, AlertBackupOld,
	}
}

// OfCluster reports whether an event concerns nodes or the cluster. For such an event it does not
// matter which jobs a rule covers.
func (e AlertEvent) OfCluster() bool {
	return e == AlertNodeGone || e == AlertClockSkew || slices.Contains(AlertTroubles(), e)
}

// Once reports whether an event has no duration. Such an event is sent each time. It raises no
// alert.
func (e AlertEvent) Once() bool { return e == AlertStarted || e == AlertSucceeded }

// OfJob reports whether an event concerns a single job.
func (e AlertEvent) OfJob() bool {
	return !e.OfCluster() && e != AlertBacklog && e != AlertFailures
}

// Kinds of objects in the audit.
const (
	KindAlertRule    Kind = "alert_rule"
	KindAlertChannel Kind = "alert_channel"
	KindAlertSilence Kind = "alert_silence"
)

// ActionTest is sending a test message to a channel.
const ActionTest Action = "test"

// Severities of alerts, the least severe first.
var Severities = []string{"info", "warning", "error", "critical"}

// Bounds of rules, channels and silences.
const (
	MaxAlertRules    = 500
	MaxAlertChannels = 100
	MaxSilences      = 500
	MaxRuleLists     = 100     // apps, jobs or channels of a rule
	MaxTemplate      = 8 << 10 // bytes
	MaxSilence       = 366 * 24 * time.Hour
	maxAlertTime     = 31 * 24 * time.Hour
)

// AlertRule says which events to report, for which jobs, and on which channels.
type AlertRule struct {
	Name        string            `json:"name" doc:"Its name, which cannot be changed."`
	Description string            `json:"description,omitempty" doc:"A description, for people."`
	Disabled    bool              `json:"disabled,omitempty" doc:"Whether the rule is off. Then its alerts end, and it finds no new ones."`
	On          []AlertEvent      `json:"on" doc:"The events that the rule finds."`
	Apps        []string          `json:"apps,omitempty" doc:"Only jobs of these apps. Absent: all apps."`
	Jobs        []string          `json:"jobs,omitempty" doc:"Only these jobs, as app/name, where * stands for any characters, such as billing/*-nightly. Absent: all jobs."`
	Owner       string            `json:"owner,omitempty" doc:"Only jobs of this owner."`
	Labels      map[string]string `json:"labels,omitempty" doc:"Only jobs that have all of these labels."`
	Channels    []string          `json:"channels" doc:"The names of the channels that get messages."`
	Severity    string            `json:"severity,omitempty" enum:"info,warning,error,critical" doc:"The severity. Default error."`
	Repeat      Duration          `json:"repeat,omitempty" doc:"The time after which an alert that is still firing is sent again, from 1s on. Default 4h."`

	LateStart  Duration      `json:"late_start,omitempty" doc:"For late_start: how late a run may start. Default 1m."`
	LateFinish Duration      `json:"late_finish,omitempty" doc:"For late_finish, which requires it: how long after its due time a run may end."`
	NeverRan   Duration      `json:"never_ran,omitempty" doc:"For never_ran: the longest time that a job may go without starting a run, unless it is paused. Absent: only missed due times count."`
	Failures   *AlertFailing `json:"failures,omitempty" doc:"For failures, which requires it."`
	NodeGone   Duration      `json:"node_gone,omitempty" doc:"For node_gone: how long a node that stopped responding may be away. Default 30s."`
	Backlog    *AlertOverdue `json:"backlog,omitempty" doc:"For backlog. Default 100 due times that are 1m overdue."`
	ClockSkew  Duration      `json:"clock_skew,omitempty" doc:"For clock_skew: how far the clock of a node may be off. Default 1s."`

	Title string `json:"title,omitempty" doc:"A template for the first line of messages and the subject of mails. Default: the built-in one."`
	Text  string `json:"text,omitempty" doc:"A template for the text of messages. Default: the built-in one."`
}

// AlertFailing is the threshold for failures: Count failures within Within.
type AlertFailing struct {
	Count  int      `json:"count" doc:"The number of failed due times, from 2 to 1000."`
	Within Duration `json:"within" doc:"The period in which they fail, from 1s to 744h."`
	Per    string   `json:"per,omitempty" enum:"job,app,rule" doc:"Whether failures of one job, of one app, or of all jobs of the rule are counted together. Default job."`
}

// AlertOverdue is the threshold for the backlog: the number of overdue due times.
type AlertOverdue struct {
	Tasks     int      `json:"tasks,omitempty" doc:"The number of overdue due times, from 1 to 10000."`
	OlderThan Duration `json:"older_than,omitempty" doc:"How long they are overdue, from 1s to 744h."`
}

// Has reports whether the rule listens to an event.
func (r *AlertRule) Has(e AlertEvent) bool { return slices.Contains(r.On, e) }

// Defaults of rules.
const (
	DefaultAlertRepeat    = Duration(4 * time.Hour)
	DefaultAlertLateStart = Duration(time.Minute)
	DefaultAlertNodeGone  = Duration(30 * time.Second)
	DefaultAlertClockSkew = Duration(time.Second)
	DefaultBacklogTasks   = 100
	DefaultBacklogAge     = Duration(time.Minute)
)

// Defaults fills empty fields.
func (r *AlertRule) Defaults() {
	if r.Severity == "" {
		r.Severity = "error"
	}

	set := func(to *Duration, d Duration) {
		if *to == 0 {
			*to = d
		}
	}

	set(&r.Repeat, DefaultAlertRepeat)
	if r.Has(AlertLateStart) {
		set(&r.LateStart, DefaultAlertLateStart)
	}

	if r.Has(AlertNodeGone) {
		set(&r.NodeGone, DefaultAlertNodeGone)
	}

	if r.Has(AlertClockSkew) {
		set(&r.ClockSkew, DefaultAlertClockSkew)
	}

	if r.Failures != nil && r.Failures.Per == "" {
		r.Failures.Per = "job"
	}

	if r.Has(AlertBacklog) {
		if r.Backlog == nil {
			r.Backlog = &AlertOverdue{}
		}
		if r.Backlog.Tasks == 0 {
			r.Backlog.Tasks = DefaultBacklogTasks
		}
		set(&r.Backlog.OlderThan, DefaultBacklogAge)
	}
}

// Validate returns all problems of a rule, as Problems, or nil. The rule must have its defaults
// filled in.
func (r *AlertRule) Validate() error {
	var p Problems
	checkName(&p, "name", r.Name)
	checkText(&p, "description", r.Description, MaxText)
	checkText(&p, "owner", r.Owner, MaxText)
	r.checkEvents(&p)
	list := func(field string, names []string, most int) {
		if len(names) > most {
			p.Add(field, problem.TooMany, len(names), most)
			return
		}
		for i, n := range names {
			at := fmt.Sprintf("%s[%d]", field, i)
			checkLine(&p, at, n, 2*MaxName+1)
			if slices.Contains(names[:i], n) {
				p.Add(at, problem.GivenAlready, problem.Quoted(n))
			}
		}
	}

	list("apps", r.Apps, MaxRuleLists)
	list("jobs", r.Jobs, MaxRuleLists)
	list("channels", r.Channels, 20)
	for i, j := range r.Jobs[:min(len(r.Jobs), MaxRuleLists)] {
		if !strings.Contains(j, "/") && j != "" {
			p.Add(fmt.Sprintf("jobs[%d]", i), problem.JobWithoutApp, j, DefaultApp, j, j)
		}
	}

	if len(r.Channels) == 0 {
		p.Add("channels",
			problem.MissingPlural.Advise("name at least one channel; PUT /api/v1/alerts/channels/NAME creates one"))
	}

	if len(r.Labels) > MaxLabels {
		p.Add("labels", problem.TooMany, len(r.Labels), MaxLabels)
	}

	for k, v := range r.Labels {
		checkName(&p, "labels", k)
		checkText(&p, "labels."+k, v, MaxName)
	}

	if !slices.Contains(Severities, r.Severity) {
		p.Add("severity", problem.NotOneOf, shorten(r.Severity), strings.Join(Severities, ", "))
	}

	checkSpan(&p, "repeat", r.Repeat, time.Second, maxAlertTime)
	r.checkThresholds(&p)
	checkTemplate(&p, "title", r.Title)
	checkTemplate(&p, "text", r.Text)
	return p.orNil()
}

// CheckStored checks only the times and counts of a stored rule. The rule must have its defaults
// filled in. CheckStored returns Problems or nil. A rule with any other problem can still send
// alerts.
func (r *AlertRule) CheckStored() error {
	var p Problems
	checkSpan(&p, "repeat", r.Repeat, time.Second, maxAlertTime)
	r.checkThresholds(&p)
	return p.orNil()
}

func (p Problems) orNil() error {
	if p == nil {
		return nil
	}
	return p
}

// checkLine refuses a text that is longer than one line or that people cannot read.
func checkLine(p *Problems, field, s string, most int) {
	switch {
	case s == "":
		p.Add(field, problem.Empty)
	case !utf8.ValidString(s):
		p.Add(field, problem.NotUTF8)
	case utf8.RuneCountInString(s) > most:
		p.Add(field, problem.TooLong, utf8.RuneCountInString(s), most)
	case strings.ContainsFunc(s, unicode.IsControl):
		p.Add(field, problem.ControlCharacter, shorten(s))
	}
}

func (r *AlertRule) checkEvents(p *Problems) {
	known := AlertEvents()
	if len(r.On) == 0 {
		p.Add("on", problem.Missing.Advise("name at least one event, such as [%q, %q]", AlertFailed, AlertRecovered))
	}

	if len(r.On) > len(known) {
		p.Add("on", problem.TooManyEvents, len(r.On), len(known), words(known))
		return
	}

	for i, e := range r.On {
		at := fmt.Sprintf("on[%d]", i)
		switch {
		case !slices.Contains(known, e):
			p.Add(at, problem.NotOneOf, shorten(string(e)), words(known))
		case slices.Contains(r.On[:i], e):
			p.Add(at, problem.GivenAlready, e)
		}
	}

	if r.Has(AlertRecovered) && !r.alerts() {
		p.Add("on", problem.RecoveredAlone)
	}
}

func words[T ~string](list []T) string {
	out := make([]string, len(list))
	for i, w := range list {
		out[i] = string(w)
	}
	return strings.Join(out, ", ")
}

func checkSpan(p *Problems, field string, d Duration, least, most time.Duration) {
	if time.Duration(d) < least || time.Duration(d) > most {
		p.Add(field, problem.NotBetween, d, Duration(least), Duration(most))
	}
}

// checkThresholds requires every threshold that an event of the rule needs. It refuses a threshold
// that no event uses, because the rule's author would think that the threshold has an effect.
func (r *AlertRule) checkThresholds(p *Problems) {
	for _, t := range []struct {
		event  AlertEvent
		d      Duration
		needed bool
	}{
		{AlertLateStart, r.LateStart, true}, {AlertLateFinish, r.LateFinish, true}, {AlertNeverRan, r.NeverRan, false},
		{AlertNodeGone, r.NodeGone, true}, {AlertClockSkew, r.ClockSkew, true},
	} {
		field := string(t.event)
		switch {
		case !r.Has(t.event) && t.d != 0:
			p.Add(field, problem.ThresholdUnused, t.event)
		case t.d == 0 && r.Has(t.event) && t.needed:
			p.Add(field, problem.Missing.Advise("give the limit, such as \"2h\""))
		case t.d != 0 && t.event == AlertClockSkew:
			checkSpan(p, field, t.d, time.Millisecond, maxAlertTime)
		case t.d != 0 && t.event == AlertNeverRan:
			checkSpan(p, field, t.d, time.Minute, maxAlertTime)
		case t.d != 0:
			checkSpan(p, field, t.d, time.Second, maxAlertTime)
		}
	}

	switch f := r.Failures; {
	case f == nil && r.Has(AlertFailures):
		p.Add("failures",
			problem.Missing.Advise(`give a number and a period, such as {"count": 3, "within": "10m"}`))
	case f != nil && !r.Has(AlertFailures):
		p.Add("failures", problem.ThresholdUnused, AlertFailures)
	case f != nil:
		if f.Count < 2 || f.Count > 1000 {
			p.Add("failures.count", problem.NotBetween.Advise("for an alert about each failure, add failed to "+
				"on"), f.Count, 2, 1000)
		}
		checkSpan(p, "failures.within", f.Within, time.Second, maxAlertTime)
		if !slices.Contains([]string{"job", "app", "rule"}, f.Per) {
			p.Add("failures.per", problem.NotOneOf, shorten(f.Per), "job, app, rule")
		}
	}

	switch b := r.Backlog; {
	case b != nil && !r.Has(AlertBacklog):
		p.Add("backlog", problem.ThresholdUnused, AlertBacklog)
	case b != nil:
		if b.Tasks < 1 || b.Tasks > 10_000 {
			p.Add("backlog.tasks", problem.NotBetween, b.Tasks, 1, 10000)
		}
		checkSpan(p, "backlog.older_than", b.OlderThan, time.Second, maxAlertTime)
	}
}

// AlertJob is the part of a job that rules depend on.
type AlertJob struct {
	ID           int64
	App, Name    string
	Owner        string
	Labels       map[string]string
	Paused, Gone bool
	Created      Micros
	Timezone     string
	Ping         *Ping
}

// Takes reports whether a rule covers a job.
func (r *AlertRule) Takes(j *AlertJob) bool {
	if len(r.Apps) > 0 && !slices.Contains(r.Apps, j.App) || r.Owner != "" && r.Owner != j.Owner {
		return false
	}
	for k, v := range r.Labels {
		if have, ok := j.Labels[k]; !ok || have != v {
			return false
		}
	}
	return len(r.Jobs) == 0 || slices.ContainsFunc(r.Jobs, func(pattern string) bool {
		return matches(pattern, j.App+"/"+j.Name)
	})
}

// OfAll reports whether a rule covers all jobs.
func (r *AlertRule) OfAll() bool {
	return len(r.Apps) == 0 && len(r.Jobs) == 0 && r.Owner == "" && len(r.Labels) == 0
}

// matches reports whether text fits pattern, in which * matches any characters.
func matches(pattern, text string) bool {
	parts := strings.Split(pattern, "*")
	if len(parts) == 1 {
		return pattern == text
	}

	if !strings.HasPrefix(text, parts[0]) {
		return false
	}

	text = text[len(parts[0]):]
	last := parts[len(parts)-1]
	for _, part := range parts[1 : len(parts)-1] {
		i := strings.Index(text, part)
		if i < 0 {
			return false
		}
		text = text[i+len(part):]
	}

	return strings.HasSuffix(text, last)
}

// Silence stops messages about alerts for a while. The alerts are still recorded.
type Silence struct {
	ID      int64
	App     string // only alerts of this app; "": all
	Job     string // only this job of the app
	Rule    string // only alerts of this rule
	Until   Micros
	Reason  string
	Who     string
	Created Micros
}

// Check returns the problems of a silence that begins now, as Problems, or nil.
func (s *Silence) Check(now Micros) error {
	var p Problems
	if s.App != "" {
		checkName(&p, "app", s.App)
	}

	if s.Job != "" {
		checkName(&p, "job", s.Job)
		if s.App == "" {
			p.Add("app", problem.Missing.Advise("give the app of the job"))
		}
	}

	if s.Rule != "" {
		checkName(&p, "rule", s.Rule)
	}

	switch {
	case s.Until == 0:
		p.Add("until", problem.Missing.Advise("give the end of the silence, as a time or as a duration such as \"2h\""))
	case s.Until <= now:
		p.Add("until", problem.Passed, s.Until)
	case s.Until > now.Add(MaxSilence):
		p.Add("until", problem.TooFarAhead, s.Until, Duration(MaxSilence))
	}

	if strings.TrimSpace(s.Reason) == "" {
		p.Add("reason", problem.Missing.Advise("give a reason, so that others know why there are no messages"))
	}

	checkText(&p, "reason", s.Reason, 512)
	return p.orNil()
}

// Covers reports whether the silence applies to an alert of a rule. app and jobName are empty for
// an alert that has none.
func (s *Silence) Covers(rule, app, jobName string) bool {
	return (s.App == "" || s.App == app) && (s.Job == "" || s.Job == jobName) && (s.Rule == "" || s.Rule == rule)
}

// Address returns the mail address in a text such as a job's owner, or "".
func Address(text string) string {
	a, err := mail.ParseAddress(text)
	if err != nil || len(a.Address) > 254 || strings.ContainsAny(a.Address, "\r\n") {
		return ""
	}
	return a.Address
}
