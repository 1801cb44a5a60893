package alert

import (
	"context"
	"encoding/json"
	"maps"
	"slices"

	"go-crontab/job"
)

// resolve completes the notices for PagerDuty channels. When an alert is over, each incident that
// the channel opened for it is resolved, and no other incident is. So an
// incident is resolved even if its rule was silenced, disabled, deleted or changed since it was
// opened. If no node has tried to send the opening message yet, neither the opening nor the
// resolving message is sent. Otherwise in a flood, the opening message would arrive long after the
// alert is over.
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

		// Find the incidents that this step or an earlier message opens.
		opened, untried := map[string]bool{}, map[string][]int64{} // by ids of alerts
		for g := range c.notices {
			if g.channel == name && g.alone != nil && g.what != "resolved" {
				opened[idText(g.alone.ID)] = true
			}
		}

		note := func(id int64, items string, waits bool) {
			var list []job.AlertItem
			_ = json.Unmarshal([]byte(items), &list) // a value changed outside the program may be undecodable: empty
			for i := range list {
				if alert := list[i].AlertID; waits {
					untried[alert] = append(untried[alert], id)
				} else {
					opened[alert] = true
				}
			}
		}
		err := eachSent(e.DB.Reader(ctx), ch.ID, slices.Sorted(maps.Keys(rules)), since, note)
		if err != nil && ctx.Err() == nil {
			// The next step would find the same ends and fail in the same way. So resolve all of
			// them. PagerDuty ignores an incident that it does not know, and an opening message is
			// sent before its resolving message.
			e.Log.Warn("cannot read which incidents PagerDuty has, resolving all ended ones",
				"channel", name, "alerts", len(over), "error", err)
			clear(untried)
			for _, row := range over {
				opened[idText(row.ID)] = true
			}
		} else if err != nil {
			return err
		}

		// Resolve the opened incidents.
		for _, row := range over {
			id := idText(row.ID)
			g := group{channel: name, rule: row.RuleID, state: DeliveryPending, alone: row, what: "resolved"}
			_, is := c.notices[g]
			forgotten := is && now-row.First >= micros(job.Duration(Kept)) // its opening message may be gone
			switch {
			case !opened[id] && untried[id] == nil && !forgotten:
				delete(c.notices, g)
				continue
			case !is:
				c.notices[g] = []notice{{row: row, what: g.what, at: now, seen: row.Seen, text: row.Why}}
			}

			if untried[id] != nil {
				c.unsent[g] = unsent{untried[id], !opened[id] && !forgotten}
			}
		}
	}
	return nil
}
