package api

import (
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"go-crontab/api/view"
	"go-crontab/internal/alert"
	"go-crontab/internal/auth"
	"go-crontab/internal/feed"
	"go-crontab/job"
	"go-crontab/sql"
	"go-crontab/sql/read"
)

// Alerter sends messages about alerts. The node implements it.
type Alerter interface {
	// Test sends test messages at once and returns the results in the same order.
	Test(ctx context.Context, samples []alert.Sample) ([]alert.Tested, error)
}

func metaOf(r *alert.Definition) view.AlertMeta {
	return view.AlertMeta{Version: r.Version, Created: r.Created.Time(), Updated: r.Updated.Time(), By: r.By}
}

// alertReadOnly are the fields of a rule or channel that a request cannot set. The name comes from
// the path, the other fields from the server.
var alertReadOnly = []string{"name", "version", "created", "updated", "updated_by", "error"}

// channelReadOnly is alertReadOnly for channels.
var channelReadOnly = append([]string{"held", "failing"}, alertReadOnly...)

func viewRule(row *alert.Definition) view.AlertRule {
	r, err := alert.DecodeRule(row)
	v := view.AlertRule{AlertRule: r, AlertMeta: metaOf(row)}
	if v.AlertRule.Name = row.Name; err != nil {
		v.Error = err.Error()
	}
	return v
}

// viewChannel shows a channel. Nobody should write a secret into a channel, but somebody may. So
// only admins see the parts that could hold a secret.
func viewChannel(ctx context.Context, row *alert.Definition, failing []alert.FailingChannel) view.AlertChannel {
	c, err := alert.DecodeChannel(row)
	v := view.AlertChannel{AlertChannel: c, AlertMeta: metaOf(row), Held: row.Held}
	if v.AlertChannel.Name = row.Name; err != nil {
		v.Error = err.Error()
	}
	for _, f := range failing {
		if f.ID == row.ID {
			v.Failing = &view.ChannelFailing{Tries: f.Tries, Since: f.Since.Time()}
			if auth.Of(ctx).Sees() == nil { // callers limited to apps cannot list deliveries either
				v.Failing.Said = f.Said
			}
		}
	}
	if !auth.Of(ctx).May(admin) {
		hideSecrets(&v.AlertChannel)
	}
	return v
}

// hideSecrets hides the parts of a channel that may hold a secret: all headers, and the URL after
// its host.
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
	show func(*alert.Definition) V) error {
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

	p := view.Page[V]{Items: []V{}}
	rows, p.Next = oneMore(string(t), rows, limit, func(r *alert.Definition) int64 { return r.ID })
	for i := range rows {
		p.Items = append(p.Items, show(&rows[i]))
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

// capital returns the text with a capital first letter. The text must begin with an ASCII letter.
func capital(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// listChannels: GET /api/v1/alerts/channels
func (s *Server) listChannels(w http.ResponseWriter, r *http.Request) error {
	failing, err := alert.Failing(s.cfg.DB.Reader(r.Context()))
	if err != nil {
		return err
	}
	return listOf(s, w, r, alert.ChannelTable, func(row *alert.Definition) view.AlertChannel {
		return viewChannel(r.Context(), row, failing)
	})
}

// getChannel: GET /api/v1/alerts/channels/{name}
func (s *Server) getChannel(w http.ResponseWriter, r *http.Request) error {
	row, err := s.alertNamed(r, alert.ChannelTable)
	if err != nil {
		return err
	}
	failing, err := alert.Failing(s.cfg.DB.Reader(r.Context()))
	if err != nil {
		return err
	}
	return answerTagged(w, http.StatusOK, row.Version, viewChannel(r.Context(), &row, failing))
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
	return answerTagged(w, createdIf(isNew), row.Version, viewChannel(r.Context(), &row, nil))
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

	sample, err := s.alerts.SampleOf(r.Context(), name)
	if errors.Is(err, sql.ErrNotFound) {
		return noAlert(alert.ChannelTable, name)
	}
	if err != nil {
		return err
	}
	return s.answerChannelTest(w, r, sample)
}

// tryChannel: POST /api/v1/alerts/test-channel
func (s *Server) tryChannel(w http.ResponseWriter, r *http.Request) error {
	body, err := readObject(r)
	if err != nil {
		return err
	}

	f := newFields(body)
	c := channelFields(f)
	c.Name = testName(f)
	f.ignore(channelReadOnly...)
	if err := f.done(); err != nil {
		return err
	}

	sample, err := s.alerts.SampleOfChannel(c)
	if err != nil {
		return err
	}
	return s.answerChannelTest(w, r, sample)
}

// testName reads the name of a tested rule or channel, which may not have a name yet.
func testName(f *fields) (name string) {
	f.text("name", &name)
	return cmp.Or(name, "test")
}

func (s *Server) answerChannelTest(w http.ResponseWriter, r *http.Request, sample alert.Sample) error {
	tested, err := s.test(r, []alert.Sample{sample})
	if err != nil {
		return err
	}
	t := &tested[0]
	return answer(w, http.StatusOK, view.ChannelTest{Sent: t.Sent, Said: t.Said, TookMS: t.Took.Milliseconds()})
}

// tryRule: POST /api/v1/alerts/test-rule
func (s *Server) tryRule(w http.ResponseWriter, r *http.Request) error {
	body, err := readObject(r)
	if err != nil {
		return err
	}

	f := newFields(body)
	rule := ruleFields(f)
	rule.Name = testName(f)
	f.ignore(alertReadOnly...)
	if err := f.done(); err != nil {
		return err
	}

	samples, err := s.alerts.SamplesOfRule(r.Context(), rule)
	if err != nil {
		return err
	}
	tested, err := s.test(r, samples)
	if err != nil {
		return err
	}

	v := view.RuleTest{Channels: []view.RuleTestChannel{}}
	for _, t := range tested {
		v.Channels = append(v.Channels, view.RuleTestChannel{
			Channel:     t.Channel,
			ChannelTest: view.ChannelTest{Sent: t.Sent, Said: t.Said, TookMS: t.Took.Milliseconds()},
		})
	}
	return answer(w, http.StatusOK, v)
}

// test sends samples and records the results.
func (s *Server) test(r *http.Request, samples []alert.Sample) ([]alert.Tested, error) {
	if s.cfg.Alerts == nil {
		return nil, noSession.problem("This node does not send messages; ask another node.")
	}
	tested, err := s.cfg.Alerts.Test(r.Context(), samples)
	if err != nil {
		return nil, err
	}

	for i := range tested {
		if err := s.alerts.RecordTest(r.Context(), &tested[i]); err != nil {
			// The message was sent, so the client gets no error.
			s.cfg.Log.Warn("cannot record the test of a channel", "channel", tested[i].Channel, "error", err)
		}
	}
	return tested, nil
}

func viewAlert(f *alert.FiredRow) view.Alert {
	v := view.Alert{
		ID: idText(f.ID), State: "resolved", Rule: f.Rule, Event: f.Event, Severity: f.Severity,
		App: f.App, JobID: idText(f.JobID), Job: f.Job, Owner: f.Owner, Node: f.Node,
		Run: f.Run, Summary: f.Summary, First: f.First.Time(), Last: f.Last.Time(), Seen: f.Seen,
		Told: instant(f.Told), Silence: idText(f.Silence), Resolved: instant(f.Over), Why: f.Why,
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

	p := view.Page[view.Alert]{Items: []view.Alert{}}
	if next != 0 {
		p.Next = (&cursor{list: "alerts", RunPlace: read.RunPlace{ID: next}}).String()
	}

	for i := range rows {
		p.Items = append(p.Items, viewAlert(&rows[i]))
	}

	return answer(w, http.StatusOK, p)
}

// seesAlert reports whether a principal may see an alert. The rule is the same as for the alert's
// events.
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

// alertSummary: GET /api/v1/alerts/summary
func (s *Server) alertSummary(w http.ResponseWriter, r *http.Request) error {
	c, err := alert.Count(s.cfg.DB.Reader(r.Context()), auth.Of(r.Context()).Sees())
	if err != nil {
		return err
	}
	return answer(w, http.StatusOK, view.AlertSummary(c))
}

func viewDelivery(d *alert.DeliveryRow) view.Delivery {
	v := view.Delivery{
		ID: idText(d.ID), Key: hex.EncodeToString(d.Key[:]), Kind: d.Kind, Channel: d.Channel,
		Rule: d.Rule, Target: d.Target, State: d.State.String(), Attempts: d.Attempts,
		Events: d.Events, Items: []job.AlertItem{}, Said: d.Said, Created: d.Created.Time(), Updated: d.Updated.Time(),
	}
	if d.State <= alert.DeliverySending {
		v.Next = instant(d.NextAt)
	}
	// If the items were changed outside the program and cannot be read, none are shown.
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

	p := view.Page[view.Delivery]{Items: []view.Delivery{}}
	if next != nil {
		p.Next = (&cursor{list: "deliveries", RunPlace: runPlace(next)}).String()
	}

	for i := range rows {
		p.Items = append(p.Items, viewDelivery(&rows[i]))
	}

	return answer(w, http.StatusOK, p)
}
