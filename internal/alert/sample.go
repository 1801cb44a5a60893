package alert

import (
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"go-crontab/job"
	"go-crontab/sql"

	"github.com/google/uuid"
)

// Sample is a test message: a message to a channel, or a message as a rule would send it. The rule
// need not be saved. A channel that is tested without a rule need not be saved, either.
type Sample struct {
	Channel   job.AlertChannel
	ChannelID int64          // 0: the channel is not saved
	Rule      *job.AlertRule // nil: only the channel is tested
	Wrong     string         // why the channel cannot be used; "": it can
}

// testTime bounds a test, because somebody waits for the answer. The API allows 20 s for a
// request.
const testTime = 15 * time.Second

// Test sends a sample now. For PagerDuty it also resolves the incident of the test.
func (o *Outside) Test(ctx context.Context, s *Sample, now job.Micros) (Tested, error) {
	t := Tested{Channel: s.Channel.Name, ChannelID: s.ChannelID, Key: uuid.New(), At: now}
	item := o.sampleItem(s, now)
	text, err := json.Marshal([]job.AlertItem{item})
	if err != nil {
		return t, err
	}
	t.Items = string(text)

	l := &letter{
		DeliveryRow: DeliveryRow{Key: t.Key, Kind: DeliveryTest, Channel: t.Channel, Events: 1},
		channel:     s.Channel,
		items:       []job.AlertItem{item},
	}
	o.link(l.items)
	if s.Rule != nil {
		t.Rule, l.rule, l.Rule = s.Rule.Name, *s.Rule, s.Rule.Name
	}
	if s.Wrong != "" {
		t.Said = s.Wrong
		return t, nil
	}

	began := time.Now()
	ctx, cancel := context.WithTimeout(ctx, min(time.Duration(l.channel.Timeout), testTime))
	defer cancel()
	v := o.send(ctx, l)
	if v.err == nil && len(l.templates) > 0 {
		v.err = fmt.Errorf("%w; the message was sent with the built-in text", l.templates[0])
	}

	if v.err == nil && l.channel.Type == job.ChannelPagerDuty {
		// Resolve the test incident. If we die first, the incident stays open, and the tester sees
		// it. AlertID and Since give the resolving event the key of the test incident, see
		// pagerEvent. The message itself has its own key.
		item.What, item.AlertID, item.Since = "resolved", "test", hex.EncodeToString(t.Key[:])
		l.Key, l.items = uuid.New(), []job.AlertItem{item}
		if end := o.send(ctx, l); end.err != nil {
			v.said += "; the incident stays open: " + end.err.Error()
		} else {
			v.said += "; the incident is resolved"
		}
	}

	t.Took, t.Sent, t.Said = time.Since(began), v.err == nil, v.said
	if v.err != nil {
		t.Said = v.err.Error()
		if ctx.Err() != nil && time.Duration(l.channel.Timeout) > testTime {
			t.Said += fmt.Sprintf("; a test waits only %s, a message %s", testTime, l.channel.Timeout)
		}
	}
	return t, nil
}

// TestAll tests several samples at once.
func (o *Outside) TestAll(ctx context.Context, samples []Sample, now job.Micros) ([]Tested, error) {
	out, errs := make([]Tested, len(samples)), make([]error, len(samples))
	var wg sync.WaitGroup
	for i := range samples {
		wg.Go(func() { out[i], errs[i] = o.Test(ctx, &samples[i], now) })
	}
	wg.Wait()
	return out, cmp.Or(errs...)
}

// sampleItem returns the event of a sample. For a rule, the event looks like an alert about a job
// that the rule covers.
func (o *Outside) sampleItem(s *Sample, now job.Micros) job.AlertItem {
	item := job.AlertItem{
		What: "test", Event: job.AlertFailed, Severity: "info",
		Summary: fmt.Sprintf("This is a test of the channel %s, sent by the node %s. Nothing is wrong.",
			s.Channel.Name, o.cfg.Node),
		Node: o.cfg.Node, At: now.String(), Since: now.String(), Seen: 1,
	}
	r := s.Rule
	if r == nil {
		return item
	}

	item.Event, item.Rule, item.Severity = r.On[0], r.Name, r.Severity
	item.Summary = fmt.Sprintf("This is a test of the rule %s, sent by the node %s. Nothing is wrong.",
		r.Name, o.cfg.Node)
	if item.Event.OfJob() {
		item.App, item.Job, item.Owner = job.DefaultApp, "example", r.Owner
		if len(r.Apps) > 0 {
			item.App = r.Apps[0]
		}
		item.Due, item.Zone = whenIn(now, ""), "UTC"
		item.Output = "(an alert has the last lines of the run's output here)"
	}
	return item
}

// SampleOf returns a test of a saved channel. If there is none, the error is sql.ErrNotFound.
func (s *Store) SampleOf(ctx context.Context, channel string) (Sample, error) {
	row, err := DefinitionNamed(s.DB.Reader(ctx), ChannelTable, channel)
	if err != nil {
		return Sample{}, err
	}
	return sampleOf(&row, nil), nil
}

func sampleOf(row *Definition, rule *job.AlertRule) Sample {
	c, err := DecodeChannel(row)
	out := Sample{Channel: c, ChannelID: row.ID, Rule: rule}
	if out.Channel.Name = row.Name; err != nil {
		out.Wrong = "the channel cannot be read: " + err.Error()
	}
	return out
}

// SampleOfChannel returns a test of a channel that is not saved. If the definition is invalid, the
// error is job.Problems.
func (s *Store) SampleOfChannel(c job.AlertChannel) (Sample, error) {
	c.Defaults()
	return Sample{Channel: c}, c.Validate()
}

// SamplesOfRule returns a test of a rule for each of its channels. The rule need not be saved, but
// its channels must be. If the definition is invalid, the error is job.Problems.
func (s *Store) SamplesOfRule(ctx context.Context, r job.AlertRule) ([]Sample, error) {
	r.Defaults()
	if err := r.Validate(); err != nil {
		return nil, err
	}
	channels, err := DefinitionsNamed(s.DB.Reader(ctx), ChannelTable, r.Channels)
	if err != nil {
		return nil, err
	}
	if err := problems(r.MissingChannels(typesOf(channels))); err != nil {
		return nil, err
	}

	var out []Sample
	for _, name := range r.Channels {
		row := channels[name]
		out = append(out, sampleOf(&row, &r))
	}
	return out, nil
}

// Tested is the result of a test.
type Tested struct {
	Channel   string
	ChannelID int64 // 0: it is not saved
	Rule      string
	Key       [16]byte
	Items     string // JSON
	Sent      bool
	Said      string // answer or error
	At        job.Micros
	Took      time.Duration
}

// RecordTest stores the result of a test as a message, with its audit line. A message belongs to a
// saved channel, so the test of an unsaved channel leaves only the audit line.
func (s *Store) RecordTest(ctx context.Context, t *Tested) error {
	return s.DB.RecordAt(ctx, func(tx *sql.Tx, now job.Micros) (*job.Entry, error) {
		line := &job.Entry{
			Kind: job.KindAlertChannel, Ref: t.ChannelID, Name: t.Channel, Action: job.ActionTest, Reason: t.Said,
		}
		if t.ChannelID == 0 {
			return line, nil
		}

		d := DeliveryRow{
			Key: t.Key, Kind: DeliveryTest, ChannelID: t.ChannelID, Channel: t.Channel, Rule: t.Rule,
			State: DeliveryFailed, Attempts: 1, NextAt: now, Events: 1, Items: t.Items, Said: t.Said,
			Created: t.At, Updated: now,
		}
		if t.Sent {
			d.State = DeliverySent
		}
		return line, insertDelivery(tx, &d)
	})
}
