package alert

import (
	"context"
	"encoding/json"
	"maps"
	"slices"

	"go-crontab/job"
)

// resolve has it told to channels of type pagerduty that an alert is over of which they were told, and no other. A rule
// does not tell them if it is silenced, disabled, deleted or about something else now, or names other channels: the
// incident would stay open. And an incident that nobody has begun to open is left as it is: in a flood it would be opened
// long after it is over.
func (e *Evaluator) resolve(ctx context.Context, c *changes, now job.Micros) error {
	for name, ch := range e.state.config.channels {
		if ch.Type != job.ChannelPagerDuty || ch.Disabled {
			continue
		}
		var over []*FiredRow
		rules, since := map[int64]bool{}, now
		for _, row := range c.fired {
			if !row.Firing && row.Told != 0 && row.ID != 0 {
				over, rules[row.RuleID], since = append(over, row), true, min(since, row.First)
			}
		}
		if len(over) == 0 {
			continue
		}
		opened, untried := map[string]bool{}, map[string][]int64{} // by ids of alerts
		for g := range c.told {
			if g.channel == name && g.alone != nil && g.what != "resolved" {
				opened[idText(g.alone.ID)] = true
			}
		}
		err := eachTold(e.DB.Reader(ctx), ch.ID, slices.Sorted(maps.Keys(rules)), since, func(id int64, items string, waits bool) {
			var list []job.AlertItem
			_ = json.Unmarshal([]byte(items), &list) // what a hand wrote there and cannot be read counts as none
			for i := range list {
				if alert := list[i].AlertID; waits {
					untried[alert] = append(untried[alert], id)
				} else {
					opened[alert] = true
				}
			}
		})
		if err != nil && ctx.Err() == nil {
			// The next step would find the same ends, and ask the same. So it is told of all: PagerDuty leaves an incident that
			// it does not know as it is, and what opens one comes before what resolves it.
			e.Log.Warn("cannot read what PagerDuty was told, telling it of all that is over", "channel", name, "alerts", len(over), "error", err)
			clear(untried)
			for _, row := range over {
				opened[idText(row.ID)] = true
			}
		} else if err != nil {
			return err
		}
		for _, row := range over {
			id := idText(row.ID)
			g := group{channel: name, rule: row.RuleID, state: DeliveryPending, alone: row, what: "resolved"}
			_, is := c.told[g]
			forgotten := is && now-row.First >= micros(job.Duration(Kept)) // what it was told of may be removed by now
			switch {
			case !opened[id] && untried[id] == nil && !forgotten:
				delete(c.told, g)
				continue
			case !is:
				c.told[g] = []told{{row: row, what: g.what, at: now, seen: row.Seen, text: row.Why}}
			}
			if untried[id] != nil {
				c.unsent[g] = unsent{untried[id], !opened[id] && !forgotten}
			}
		}
	}
	return nil
}
