package api

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"go-crontab/internal/alert"
	"go-crontab/internal/auth"
	"go-crontab/internal/feed"
	"go-crontab/job"
	"go-crontab/sql"
	"go-crontab/sql/read"
)

// Alerter sends messages about alerts. The node implements it.
type Alerter interface {
	// Test sends a message to a channel at once and returns the result. It returns sql.ErrNotFound
	// if the channel does not exist.
	Test(ctx context.Context, channel string) (alert.Tested, error)
}

// alertMeta holds the server's metadata of a rule or a channel.
type alertMeta struct {
	Version int64  `json:"version" doc:"A number that grows with each change."`
	Created string `json:"created" format:"date-time" doc:"When it was created."`
	Updated string `json:"updated" format:"date-time" doc:"When it was last changed."`
	By      string `json:"updated_by" doc:"Who changed it last."`
	Error   string `json:"error,omitempty" doc:"Why the stored definition cannot be read. Replace it with PUT."`
}

func metaOf(r *alert.Definition) alertMeta {
	return alertMeta{Version: r.Version, Created: stamp(r.Created), Updated: stamp(r.Updated), By: r.By}
}

// alertReadOnly are the fields of a rule or channel that only the server sets, and the name, which
// the path gives.
var alertReadOnly = []string{"name", "version", "created", "updated", "updated_by", "error"}

// channelReadOnly is alertReadOnly for channels.
var channelReadOnly = append([]string{"held"}, alertReadOnly...)

// alertRuleView is a rule as clients see it.
type alertRuleView struct {
	job.AlertRule
	alertMeta
}

// alertChannelView is a channel as clients see it.
type alertChannelView struct {
	job.AlertChannel
	alertMeta
	Held string `json:"held,omitempty" doc:"For a heartbeat: why it is not called now."`
}

func viewRule(row *alert.Definition) alertRuleView {
	r, err := alert.DecodeRule(row)
	v := alertRuleView{r, metaOf(row)}
	if v.AlertRule.Name = row.Name; err != nil {
		v.Error = err.Error()
	}
	return v
}

// viewChannel shows a channel. Only admins see the parts that may hold secrets, although no secret
// should be written there.
func viewChannel(ctx context.Context, row *alert.Definition) alertChannelView {
	c, err := alert.DecodeChannel(row)
	v := alertChannelView{c, metaOf(row), row.Held}
	if v.AlertChannel.Name = row.Name; err != nil {
		v.Error = err.Error()
	}
	if !auth.Of(ctx).May(admin) {
		hideSecrets(&v.AlertChannel)
	}
	return v
}

// hideSecrets hides the possibly secret parts of a channel: everything in the URL but scheme and
// host, and all headers.
func hideSecrets(c *job.AlertChannel) {
	if _, secret := job.WholeSecret(c.URL); !secret && c.URL != "" {
		u, err := url.Parse(c.URL)
		if c.URL = "***"; err == nil {
			c.URL = u.Scheme + "://" + u.Host + "/***"
		}
	}
	for k := range c.Headers {
		c.Headers[k] = "***"
	}
}

// listOf answers with a page of definitions.
func listOf[V any](s *Server, w http.ResponseWriter, r *http.Request, t alert.Table,
	view func(*alert.Definition) V) error {
	q := newQuery(r)
	limit, after := q.limit(), int64(0)
	if c := q.cursor(string(t)); c != nil {
		after = c.ID
	}
	if err := q.err(); err != nil {
		return err
	}

	rows, err := alert.Definitions(s.cfg.DB.Reader(r.Context()), t, after, limit+1)
	if err != nil {
		return err
	}

	p := page[V]{Items: []V{}}
	rows, p.Next = oneMore(string(t), rows, limit, func(r *alert.Definition) int64 { return r.ID })
	for i := range rows {
		p.Items = append(p.Items, view(&rows[i]))
	}

	return answer(w, http.StatusOK, p)
}

func (s *Server) alertNamed(r *http.Request, t alert.Table) (alert.Definition, error) {
	name, err := param(r, "name")
	if err != nil {
		return alert.Definition{}, err
	}
	row, err := alert.DefinitionNamed(s.cfg.DB.Reader(r.Context()), t, name)
	if errors.Is(err, sql.ErrNotFound) {
		err = noAlert(t, name)
	}
	return row, err
}

func noAlert(t alert.Table, name string) error {
	if t == alert.ChannelTable {
		return notFound.problem("There is no channel %q; create it with PUT, or with go-crontab alert channel set.",
			cutShort(name))
	}
	return notFound.problem("There is no rule %q; create it with PUT, or with go-crontab alert rule set.", cutShort(name))
}

// listRules: GET /api/v1/alerts/rules
func (s *Server) listRules(w http.ResponseWriter, r *http.Request) error {
	return listOf(s, w, r, alert.RuleTable, viewRule)
}

// getRule: GET /api/v1/alerts/rules/{name}
func (s *Server) getRule(w http.ResponseWriter, r *http.Request) error {
	row, err := s.alertNamed(r, alert.RuleTable)
	if err != nil {
		return err
	}
	return answerTagged(w, http.StatusOK, row.Version, viewRule(&row))
}

// putRule: PUT /api/v1/alerts/rules/{name}
func (s *Server) putRule(w http.ResponseWriter, r *http.Request) error {
	name, err := param(r, "name")
	if err != nil {
		return err
	}

	body, err := readObject(r)
	if err != nil {
		return err
	}

	f := newFields(body)
	rule := ruleFields(f)
	f.ignore(alertReadOnly...)
	if err := f.done(); err != nil {
		return err
	}

	rule.Name = name
	ctx, err := wanted(r, "rule")
	if err != nil {
		return err
	}

	row, isNew, err := s.alerts.PutRule(ctx, rule)
	if err != nil {
		return lookAt(err, "You can safely repeat the request.")
	}
	return answerTagged(w, createdIf(isNew), row.Version, viewRule(&row))
}

func createdIf(isNew bool) int {
	if isNew {
		return http.StatusCreated
	}
	return http.StatusOK
}

// deleteRule: DELETE /api/v1/alerts/rules/{name}
func (s *Server) deleteRule(w http.ResponseWriter, r *http.Request) error {
	return s.deleteAlert(w, r, alert.RuleTable, s.alerts.DeleteRule)
}

// deleteChannel: DELETE /api/v1/alerts/channels/{name}
func (s *Server) deleteChannel(w http.ResponseWriter, r *http.Request) error {
	return s.deleteAlert(w, r, alert.ChannelTable, s.alerts.DeleteChannel)
}

func (s *Server) deleteAlert(w http.ResponseWriter, r *http.Request, t alert.Table,
	remove func(context.Context, string) error) error {
	name, err := param(r, "name")
	if err != nil {
		return err
	}

	var used *alert.InUse
	switch err := remove(r.Context(), name); {
	case errors.As(err, &used):
		return inUse.problem("%s. Change the rules first.", cut(capital(used.Error()), maxMessage))
	case errors.Is(err, sql.ErrNotFound):
		return noAlert(t, name)
	case err != nil:
		return lookAt(err, "GET shows whether it still exists.")
	}

	w.WriteHeader(http.StatusNoContent)
	return nil
}

// capital returns a text that begins with an ASCII letter with a capital one, as a sentence.
func capital(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// listChannels: GET /api/v1/alerts/channels
func (s *Server) listChannels(w http.ResponseWriter, r *http.Request) error {
	return listOf(s, w, r, alert.ChannelTable, func(row *alert.Definition) alertChannelView {
		return viewChannel(r.Context(), row)
	})
}

// getChannel: GET /api/v1/alerts/channels/{name}
func (s *Server) getChannel(w http.ResponseWriter, r *http.Request) error {
	row, err := s.alertNamed(r, alert.ChannelTable)
	if err != nil {
		return err
	}
	return answerTagged(w, http.StatusOK, row.Version, viewChannel(r.Context(), &row))
}

// putChannel: PUT /api/v1/alerts/channels/{name}
func (s *Server) putChannel(w http.ResponseWriter, r *http.Request) error {
	name, err := param(r, "name")
	if err != nil {
		return err
	}

	body, err := readObject(r)
	if err != nil {
		return err
	}

	f := newFields(body)
	c := channelFields(f)
	f.ignore(channelReadOnly...)
	if err := f.done(); err != nil {
		return err
	}

	c.Name = name
	ctx, err := wanted(r, "channel")
	if err != nil {
		return err
	}

	row, isNew, err := s.alerts.PutChannel(ctx, c)
	if err != nil {
		return lookAt(err, "You can safely repeat the request.")
	}
	return answerTagged(w, createdIf(isNew), row.Version, viewChannel(r.Context(), &row))
}

// testedView is the result of a channel test.
type testedView struct {
	Sent   bool   `json:"sent" doc:"Whether the channel accepted the message."`
	Said   string `json:"said" doc:"The response of the channel, or why the message could not be sent."`
	TookMS int64  `json:"took_ms" doc:"How long the test took."`
}

// testChannel: POST /api/v1/alerts/channels/{name}/test
func (s *Server) testChannel(w http.ResponseWriter, r *http.Request) error {
	name, err := param(r, "name")
	if err != nil {
		return err
	}
	if err := readNothing(r); err != nil {
		return err
	}
	if s.cfg.Alerts == nil {
		return noSession.problem("This node does not send messages; ask another node.")
	}

	t, err := s.cfg.Alerts.Test(r.Context(), name)
	switch {
	case errors.Is(err, sql.ErrNotFound):
		return noAlert(alert.ChannelTable, name)
	case err != nil:
		return err
	}

	if err := s.alerts.RecordTest(r.Context(), &t); err != nil {
		// The message was sent, so this is not an error for the client.
		s.cfg.Log.Warn("cannot record the test of a channel", "channel", name, "error", err)
	}
	return answer(w, http.StatusOK, testedView{t.Sent, t.Said, t.Took.Milliseconds()})
}

// alertView is an alert as clients see it.
type alertView struct {
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
	First    string         `json:"first" format:"date-time" doc:"When it began."`
	Last     string         `json:"last" format:"date-time" doc:"When it was last seen."`
	Seen     int64          `json:"seen" doc:"How often it was seen."`
	Told     string         `json:"told,omitempty" format:"date-time" doc:"When a message about it was last created. Absent if there was none."`
	Silence  string         `json:"silence,omitempty" doc:"The id of the silence that suppressed the message."`
	Resolved string         `json:"resolved,omitempty" format:"date-time" doc:"When it ended."`
	Why      string         `json:"resolved_by,omitempty" doc:"Why it ended."`
}

func viewAlert(f *alert.FiredRow) alertView {
	v := alertView{
		ID: idText(f.ID), State: "resolved", Rule: f.Rule, Event: f.Event, Severity: f.Severity,
		App: f.App, JobID: idText(f.JobID), Job: f.Job, Owner: f.Owner, Node: f.Node,
		Run: f.Run, Summary: f.Summary, First: stamp(f.First), Last: stamp(f.Last), Seen: f.Seen,
		Told: stamp(f.Told), Silence: idText(f.Silence), Resolved: stamp(f.Over), Why: f.Why,
	}
	if f.Firing {
		v.State = "firing"
	}
	return v
}

func idText(id int64) string {
	if id == 0 {
		return ""
	}
	return strconv.FormatInt(id, 10)
}

// listAlerts: GET /api/v1/alerts
func (s *Server) listAlerts(w http.ResponseWriter, r *http.Request) error {
	q := newQuery(r)
	f := alert.FiredFilter{
		App: q.text(ofAppParam), Apps: auth.Of(r.Context()).Sees(), JobID: q.number(ofJobParam),
		Rule: q.text(ofRuleParam),
	}

	if state := q.word(alertStateParam); state != "" {
		firing := state == "firing"
		f.Firing = &firing
	}

	f.Limit = q.limit()
	if c := q.cursor("alerts"); c != nil {
		f.Before = c.ID
	}
	if err := q.err(); err != nil {
		return err
	}

	rows, next, err := alert.Fired(s.cfg.DB.Reader(r.Context()), f)
	if err != nil {
		return err
	}

	p := page[alertView]{Items: []alertView{}}
	if next != 0 {
		p.Next = (&cursor{list: "alerts", RunPlace: read.RunPlace{ID: next}}).String()
	}

	for i := range rows {
		p.Items = append(p.Items, viewAlert(&rows[i]))
	}

	return answer(w, http.StatusOK, p)
}

// seesAlert reports whether a principal may see an alert: the same rule as for its events.
func seesAlert(who *auth.Principal, row *alert.FiredRow) bool {
	return sees(who, &feed.Event{App: row.App, Open: row.Open()})
}

// getAlert: GET /api/v1/alerts/{id}
func (s *Server) getAlert(w http.ResponseWriter, r *http.Request) error {
	none := func(text string) error { return notFound.problem("There is no alert %q.", cutShort(text)) }
	id, err := pathID(r, none)
	if err != nil {
		return err
	}

	row, err := alert.FiredByID(s.cfg.DB.Reader(r.Context()), id)
	if errors.Is(err, sql.ErrNotFound) || err == nil && !seesAlert(auth.Of(r.Context()), &row) {
		return none(strconv.FormatInt(id, 10))
	}
	if err != nil {
		return err
	}

	return answer(w, http.StatusOK, viewAlert(&row))
}

// alertSummaryView summarises all alerts and messages.
type alertSummaryView struct {
	Firing    int64            `json:"firing" doc:"How many alerts are firing."`
	States    map[string]int64 `json:"deliveries" doc:"The number of messages of the last 30 days, by state. At most 10000 of each state are counted."`
	Lost      int64            `json:"lost" doc:"How many events were dropped since the cluster was created, because there were too many."`
	Templates int64            `json:"template_failures" doc:"How many messages used the built-in text since then, because a template failed."`
}

// alertSummary: GET /api/v1/alerts/summary
func (s *Server) alertSummary(w http.ResponseWriter, r *http.Request) error {
	c, err := alert.Count(s.cfg.DB.Reader(r.Context()))
	if err != nil {
		return err
	}
	return answer(w, http.StatusOK, alertSummaryView(c))
}

// deliveryView is a message as clients see it.
type deliveryView struct {
	ID       string          `json:"id" doc:"Its id."`
	Key      string          `json:"key" doc:"The key by which a receiver can recognise a message that arrives twice."`
	Kind     string          `json:"kind" enum:"alert,test,ping,heartbeat" doc:"The kind of message. 'ping' is the call of a job's ping."`
	Channel  string          `json:"channel,omitempty" doc:"The channel that it goes to."`
	Rule     string          `json:"rule,omitempty" doc:"The rule that it comes from."`
	Target   string          `json:"target,omitempty" doc:"The recipient if it is not the channel's: the owner of a job, or the host of a ping."`
	State    string          `json:"state" enum:"pending,sending,sent,failed,silenced,suppressed" doc:"The state of the delivery. 'suppressed': its channel was disabled or deleted, or had too many messages."`
	Attempts int             `json:"attempts" doc:"How many times it was tried."`
	Next     string          `json:"next,omitempty" format:"date-time" doc:"When it is tried next."`
	Events   int64           `json:"events" doc:"How many events it contains."`
	Items    []job.AlertItem `json:"items" doc:"The first events, at most 20."`
	Said     string          `json:"said,omitempty" doc:"The last response of the channel, or why sending failed."`
	Created  string          `json:"created" format:"date-time" doc:"When it was created."`
	Updated  string          `json:"updated" format:"date-time" doc:"When it last changed."`
}

func viewDelivery(d *alert.DeliveryRow) deliveryView {
	v := deliveryView{
		ID: idText(d.ID), Key: hex.EncodeToString(d.Key[:]), Kind: d.Kind, Channel: d.Channel,
		Rule: d.Rule, Target: d.Target, State: d.State.String(), Attempts: d.Attempts,
		Events: d.Events, Items: []job.AlertItem{}, Said: d.Said, Created: stamp(d.Created), Updated: stamp(d.Updated),
	}
	if d.State <= alert.DeliverySending {
		v.Next = stamp(d.NextAt)
	}
	// Items that were edited by hand and cannot be read are shown as none.
	_ = json.Unmarshal([]byte(d.Items), &v.Items)
	return v
}

// listDeliveries: GET /api/v1/alerts/deliveries
func (s *Server) listDeliveries(w http.ResponseWriter, r *http.Request) error {
	q := newQuery(r)
	f := alert.DeliveryFilter{Channel: q.text(ofChannelParam), Rule: q.text(ofRuleParam)}
	for i, word := range alert.DeliveryStates {
		if q.word(deliveryStateParam) == word {
			state := alert.DeliveryState(i)
			f.State = &state
		}
	}

	f.Limit = q.limit()
	if c := q.cursor("deliveries"); c != nil {
		f.After = c.place()
	}
	if err := q.err(); err != nil {
		return err
	}

	rows, next, err := alert.Deliveries(s.cfg.DB.Reader(r.Context()), f)
	if err != nil {
		return err
	}

	p := page[deliveryView]{Items: []deliveryView{}}
	if next != nil {
		p.Next = (&cursor{list: "deliveries", RunPlace: runPlace(next)}).String()
	}

	for i := range rows {
		p.Items = append(p.Items, viewDelivery(&rows[i]))
	}

	return answer(w, http.StatusOK, p)
}
