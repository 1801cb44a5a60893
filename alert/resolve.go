package alert

import (
	"context"
	"encoding/json"
	"maps"
	"slices"

	"go-crontab/job"
	"go-crontab/sql"
)

// resolve has it told to channels of type pagerduty that an alert is over of which they were told, where its rule does not
// tell them: it is silenced, disabled, deleted or about something else now, or names other channels. The incident would
// stay open.
func (e *Evaluator) resolve(ctx context.Context, c *changes, now job.Micros) error {
	for name, ch := range e.state.config.channels {
		if ch.Type != job.ChannelPagerDuty || ch.Disabled {
			continue
		}
		opened, closed := map[string]bool{}, map[string]bool{} // by ids of alerts
		for g := range c.told {
			if g.channel == name && g.alone != nil {
				opened[idText(g.alone.ID)] = true
				closed[idText(g.alone.ID)] = closed[idText(g.alone.ID)] || g.what == "resolved"
			}
		}
		var over []*sql.FiredRow
		rules, since := map[int64]bool{}, now
		for _, row := range c.fired {
			if !row.Firing && row.Told != 0 && row.ID != 0 && !closed[idText(row.ID)] {
				over, rules[row.RuleID], since = append(over, row), true, min(since, row.First)
			}
		}
		if len(over) == 0 {
			continue
		}
		err := e.DB.EachTold(ctx, ch.ID, slices.Sorted(maps.Keys(rules)), since, func(items string) {
			var list []job.AlertItem
			_ = json.Unmarshal([]byte(items), &list) // what a hand wrote there and cannot be read counts as none
			for i := range list {
				opened[list[i].AlertID] = true
			}
		})
		if err != nil {
			return err
		}
		for _, row := range over {
			if opened[idText(row.ID)] {
				g := group{channel: name, rule: row.RuleID, state: sql.DeliveryPending, alone: row, what: "resolved"}
				c.told[g] = []told{{row: row, what: g.what, at: now, seen: row.Seen, text: row.Why}}
			}
		}
	}
	return nil
}
