package alert

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"

	"go-crontab/job"
	"go-crontab/sql"

	"github.com/google/uuid"
)

const (
	// shown is the number of events that a message lists. Further events are only counted.
	shown = 20
	// manyOpen bounds the waiting messages of a channel that takes one event per message.
	manyOpen = 500
	// ownerBytes bounds the owner of a job in a message.
	ownerBytes = 200
)

func idText(id int64) string {
	if id == 0 {
		return ""
	}
	return strconv.FormatInt(id, 10)
}

// write applies a step: it writes all findings of the step or none.
func (e *Evaluator) write(ctx context.Context, w work, c *changes, now job.Micros) error {
	if err := e.resolve(ctx, c, now); err != nil {
		return err
	}

	text, err := json.Marshal(c.position)
	if err != nil {
		return err
	}

	// A step without findings is not worth a write every second. It is written only when the
	// tenure ends soon.
	idle := len(c.fired)+len(c.notices)+len(c.pings)+len(c.beats)+len(c.streaks) == 0 && c.lost == 0
	if idle && string(text) == w.Position && w.Holder == e.Session.ID() && w.Until > now.Add(tenure/2) {
		return nil
	}

	w.Position, w.Holder, w.Until = string(text), e.Session.ID(), now.Add(tenure)
	made, lost := false, int64(0)
	var beaten []*channel

	err = e.DB.Tx(ctx, func(tx *sql.Tx) error {
		// The transaction may run twice, so set every variable that it captures.
		made, lost = len(c.pings)+len(c.beats) > 0, c.lost
		if err := stepped(takeStep(tx, w, c.lost)); err != nil {
			return err
		}

		for _, row := range c.fired {
			if c.isNew(row, e.state) {
				row.ID = 0 // an earlier try, which was rolled back, has set the id
			}
		}
		if err := writeFired(tx, c.fired); err != nil {
			return err
		}
		for key, s := range c.streaks {
			if err := writeStreak(tx, s.rule, key, s.times, now); err != nil {
				return err
			}
		}

		closed := map[group]bool{} // resolving notices for incidents that were never opened
		for _, g := range c.groups() {
			n, sent, err := e.writeNotices(tx, c, g, closed, now)
			if err != nil {
				return err
			}
			lost += n
			made = made || sent
		}

		if err := e.writePings(tx, c, now); err != nil {
			return err
		}
		var err error
		beaten, err = e.writeBeats(tx, c, now)
		return err
	})
	if err != nil {
		return err
	}

	e.unsaid += lost

	// The step is applied: update the state.
	s := e.state
	s.n, s.position = w.N+1, c.position
	for key, row := range c.firing {
		if row == nil {
			delete(s.firing, key)
			delete(s.seen, key)
			delete(s.lasts, key)
			continue
		}
		s.firing[key] = row
	}

	for _, ch := range beaten {
		ch.Beat = now
	}

	if made {
		e.WakeSender.Up()
	}
	return nil
}

// writeNotices writes the notices of one group, unless the group's incident was never opened. It
// returns the number of lost events, and whether there is a message to send. If an incident will
// not be opened, writeNotices marks the group of the resolving notice in closed.
func (e *Evaluator) writeNotices(
	tx *sql.Tx, c *changes, g group, closed map[group]bool, now job.Micros,
) (lost int64, sent bool, err error) {
	if u, there := c.unsent[g]; there {
		n, err := suppressDeliveries(tx, u.ids, now, "the alert ended before the message was sent")
		if err != nil {
			return 0, false, err
		}
		closed[g] = u.all && n == len(u.ids)
	}
	if closed[g] {
		return 0, false, nil
	}

	lost, err = e.writeGroup(tx, g, c.notices[g], now)
	if err != nil {
		return 0, false, err
	}
	if lost > 0 {
		if err := countLost(tx, lost); err != nil {
			return 0, false, err
		}
	}
	if lost > 0 && g.what == "fired" {
		g.what = "resolved"
		closed[g] = true
		return lost, false, nil
	}
	return lost, g.state == DeliveryPending, nil
}

// isNew reports whether a row is not in the database yet.
func (c *changes) isNew(row *FiredRow, s *state) bool {
	old := s.firing[row.Subject]
	return old == nil || old.ID != row.ID
}

// groups returns the groups in a fixed order. The order is the same each time the transaction
// runs.
func (c *changes) groups() []group {
	out := make([]group, 0, len(c.notices))
	for g := range c.notices {
		out = append(out, g)
	}
	slices.SortFunc(out, func(a, b group) int {
		return cmp.Or(
			cmp.Compare(a.channel, b.channel),
			cmp.Compare(a.rule, b.rule),
			cmp.Compare(a.target, b.target),
			cmp.Compare(a.state, b.state),
			cmp.Compare(aloneID(a), aloneID(b)),
			cmp.Compare(a.what, b.what),
		)
	})
	return out
}

func aloneID(g group) int64 {
	if g.alone == nil {
		return 0
	}
	return g.alone.ID
}

// item returns the event as messages show it.
func (t *notice) item() job.AlertItem {
	r := t.row
	return job.AlertItem{
		What: t.what, Event: r.Event, Severity: r.Severity, AlertID: idText(r.ID), Rule: r.Rule,
		App: r.App, JobID: idText(r.JobID), Job: r.Job, Owner: oneLine(r.Owner, ownerBytes), Node: r.Node, Run: r.Run,
		Summary: t.text, At: t.at.String(), Since: r.First.String(), Seen: t.seen,
	}
}

// writeGroup adds events to a message that no node has tried to send. If there is none, it makes a
// new message. It returns the number of lost events.
func (e *Evaluator) writeGroup(tx *sql.Tx, g group, events []notice, now job.Micros) (lost int64, err error) {
	ch := e.state.config.channels[g.channel]
	d := DeliveryRow{
		Kind: DeliveryOfAlert, ChannelID: ch.ID, Channel: ch.Name, RuleID: g.rule,
		Rule: events[0].row.Rule, Target: g.target, State: g.state, NextAt: now, Created: now,
	}

	// Find the message to extend, or the reason not to send one.
	switch {
	case g.state == DeliverySuppressed:
		d.Said = "the channel is disabled"
	case g.alone != nil && g.what == "resolved": // sent, however many messages wait
	case g.alone != nil:
		open, err := countOpen(tx, ch.ID)
		if err != nil {
			return 0, err
		}
		if open >= manyOpen {
			d.State, d.Said = DeliverySuppressed, "too many messages are waiting for the channel"
			lost = int64(len(events))
		}
	case g.state == DeliveryPending:
		// Do not extend a message older than tooOld, because such a message will be given up.
		old, err := openDelivery(tx, ch.ID, g.rule, g.target, now.Add(-tooOld))
		if err == nil {
			d = old
		} else if !errors.Is(err, sql.ErrNotFound) {
			return 0, err
		}
		if d.ID == 0 {
			d.NextAt = now + micros(ch.Wait)
		}
	}

	var items []job.AlertItem
	if d.Items != "" {
		_ = json.Unmarshal([]byte(d.Items), &items) // a value changed outside the program may be undecodable: empty
	}
	for i := range events {
		if len(items) < shown {
			items = append(items, events[i].item())
		}
	}

	d.Events, d.Updated = d.Events+int64(len(events)), now
	text, err := json.Marshal(items)
	if err != nil {
		return 0, err
	}

	if d.Items = string(text); d.ID != 0 {
		return lost, growDelivery(tx, &d)
	}
	d.Key = uuid.New()
	return lost, insertDelivery(tx, &d)
}

// writePings creates the pings of jobs. If no node has tried to send an earlier ping of the job,
// that ping is changed to report the latest due time.
func (e *Evaluator) writePings(tx *sql.Tx, c *changes, now job.Micros) error {
	ids := make([]int64, 0, len(c.pings))
	for id := range c.pings {
		ids = append(ids, id)
	}
	slices.Sort(ids)

	for _, id := range ids {
		p := c.pings[id]
		text, err := json.Marshal([]job.AlertItem{p.item})
		if err != nil {
			return err
		}

		d, err := openPing(tx, id)
		if err == nil {
			d.Target, d.Items, d.Events, d.Updated = p.host, string(text), d.Events+1, now
			err = growDelivery(tx, &d)
		} else if errors.Is(err, sql.ErrNotFound) {
			err = insertDelivery(tx, &DeliveryRow{
				Key: uuid.New(), Kind: DeliveryPing, Target: p.host, JobID: id, NextAt: now, Events: 1,
				Items: string(text), Created: now, Updated: now,
			})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// writeBeats creates heartbeats, and returns the channels that were checked. If the last heartbeat
// of a channel is not sent yet, writeBeats creates no further one. The next step checks that
// channel again.
func (e *Evaluator) writeBeats(tx *sql.Tx, c *changes, now job.Micros) (beaten []*channel, err error) {
	slices.SortFunc(c.beats, func(a, b beat) int { return cmp.Compare(a.channel.ID, b.channel.ID) })
	for _, b := range c.beats {

		// Wait until the last heartbeat is sent.
		open := 0
		if b.held == "" {
			if open, err = countOpen(tx, b.channel.ID); err != nil {
				return nil, err
			}
		}
		if open > 0 {
			const held = "the previous heartbeat has not been sent yet"
			if err := noteBeat(tx, b.channel.ID, b.channel.Beat, held); err != nil {
				return nil, err
			}
			continue
		}

		if err := noteBeat(tx, b.channel.ID, now, b.held); err != nil {
			return nil, err
		}
		beaten = append(beaten, b.channel)
		if b.held != "" {
			continue
		}
		err := insertDelivery(tx, &DeliveryRow{
			Key: uuid.New(), Kind: DeliveryBeat, ChannelID: b.channel.ID, Channel: b.channel.Name,
			NextAt: now, Events: 1, Items: "[]", Created: now, Updated: now,
		})
		if err != nil {
			return nil, err
		}
	}
	return beaten, nil
}
