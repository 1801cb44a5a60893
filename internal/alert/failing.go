package alert

import (
	"go-crontab/job"
	"go-crontab/sql"
)

// FailingChannel is a channel that does not take messages now.
type FailingChannel struct {
	ID    int64
	Name  string
	Tries int64      // failed tries since its last delivered message and its last change
	Since job.Micros // when the first message with such a try was created
	Said  string     // why the latest of these messages failed
}

// triesLeast is the number of failed tries after which a channel counts as failing, although its
// messages are still retried. A message that was given up counts at once. But a heartbeat that was
// given up does not count, because the next one follows soon.
const triesLeast = 3

// Failing lists the channels that are failing, by name. A channel is no longer failing once it has
// taken a message or was changed.
func Failing(r sql.Reader) ([]FailingChannel, error) {
	scan := func(rows *sql.Rows) (c FailingChannel, err error) {
		var spec string
		err = rows.Scan(&c.ID, &c.Name, &spec, &c.Tries, &c.Since, &c.Said)
		if on, wrong := DecodeChannel(&Definition{Spec: spec}); wrong == nil && on.Disabled {
			c.ID = 0
		}
		return c, err
	}

	// tries excludes a try that still goes on (state 1).
	list, err := sql.Select(r, "list channels that fail", scan, `
		SELECT c.id, c.name, c.spec, f.tries, first.created, last.said
		FROM (
			SELECT s.id, SUM(d.attempts - (d.state = 1)) tries, MIN(d.id) first_id, MAX(d.id) last_id,
				SUM(d.state = 3 AND d.kind <> 'heartbeat') given_up
			FROM (
				SELECT id, updated, (
					SELECT COALESCE(MAX(g.id), 0)
					FROM delivery g FORCE INDEX (grp)
					WHERE g.channel_id = alert_channel.id AND g.state = 2
				) sent
				FROM alert_channel
			) s
			JOIN delivery d FORCE INDEX (grp) ON d.channel_id = s.id AND d.state IN (0, 1, 3) AND d.id > s.sent
				AND d.updated > s.updated AND d.attempts > (d.state = 1)
			GROUP BY s.id
			HAVING tries >= ? OR given_up > 0
		) f
		JOIN alert_channel c ON c.id = f.id
		JOIN delivery first ON first.id = f.first_id
		JOIN delivery last ON last.id = f.last_id
		ORDER BY c.name`, triesLeast)

	on := list[:0]
	for _, c := range list {
		if c.ID != 0 {
			on = append(on, c)
		}
	}
	return on, err
}

// Sends reports whether any enabled rule sends to an enabled channel. Rules and channels that
// cannot be read count as off.
func Sends(r sql.Reader) (bool, error) {
	channels, err := Definitions(r, ChannelTable, 0, job.MaxAlertChannels)
	if err != nil {
		return false, err
	}
	on := map[string]bool{}
	for i := range channels {
		c, err := DecodeChannel(&channels[i])
		on[channels[i].Name] = err == nil && !c.Disabled
	}

	rules, err := Definitions(r, RuleTable, 0, job.MaxAlertRules)
	for i := range rules {
		rule, wrong := DecodeRule(&rules[i])
		if wrong != nil || rule.Disabled {
			continue
		}
		for _, name := range rule.Channels {
			if on[name] {
				return true, nil
			}
		}
	}
	return false, err
}
