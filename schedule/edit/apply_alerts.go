package edit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"go-crontab/internal/alert"
	"go-crontab/job"
	"go-crontab/job/problem"
	"go-crontab/sql"
	"go-crontab/sql/trip"
)

// appliedAlert is an alert channel or an alert rule.
type appliedAlert struct {
	name    string
	text    string           // the definition as it is stored
	was     alert.Definition // zero: it is new
	changes []job.Change
}

func (o *appliedAlert) action() job.Applying {
	switch {
	case o.was.ID == 0:
		return job.Created
	case o.was.Spec == o.text:
		return job.Unchanged
	}
	return job.Updated
}

func tellAlerts(list []appliedAlert) (out []job.AppliedObject) {
	for i := range list {
		o := &list[i]
		a := job.AppliedObject{Name: o.name, Action: o.action()}
		if a.Action != job.Unchanged {
			a.Changes = o.changes
		}
		out = append(out, a)
	}
	return out
}

// lookAtAlerts compares alert channels and alert rules with the current state. It also checks that
// everything exists that channels and rules name.
func (a *applying) lookAtAlerts(ctx context.Context) error {
	if len(a.want.Channels)+len(a.want.Rules) == 0 {
		return nil
	}
	channels, err := alert.DefinitionsNamed(a.DB.Reader(ctx), alert.ChannelTable, a.channelNames())
	if err != nil {
		return err
	}
	secrets, err := trip.SecretsThere(a.DB.Reader(ctx), nil, a.channelSecrets())
	if err != nil {
		return err
	}

	names := make([]string, len(a.want.Rules))
	for i, r := range a.want.Rules {
		names[i] = r.Name
	}
	rules, err := alert.DefinitionsNamed(a.DB.Reader(ctx), alert.RuleTable, names)
	if err != nil {
		return err
	}
	if err := a.checkAlerts(channels, secrets); err != nil {
		return err
	}

	for i := range a.want.Channels {
		c := &a.want.Channels[i]
		o, old, err := lookAtAlert(c.Name, c, channels)
		if err != nil {
			return err
		}
		o.changes = old.Diff(c)
		a.channels = append(a.channels, o)
	}
	for i := range a.want.Rules {
		r := &a.want.Rules[i]
		o, old, err := lookAtAlert(r.Name, r, rules)
		if err != nil {
			return err
		}
		o.changes = old.Diff(r)
		a.rules = append(a.rules, o)
	}
	return nil
}

// lookAtAlert compares a definition with the stored one. old is nil if there is no stored
// definition, or if it cannot be read.
func lookAtAlert[T any](name string, spec *T, rows map[string]alert.Definition) (o appliedAlert, old *T, err error) {
	text, err := json.Marshal(spec)
	if err != nil {
		return o, nil, err
	}
	o = appliedAlert{name: name, text: string(text), was: rows[name]}
	var v T
	if o.was.ID != 0 && json.Unmarshal([]byte(o.was.Spec), &v) == nil {
		old = &v
	}
	return o, old, nil
}

// channelNames lists the wanted channels, and the channels that rules name.
func (a *applying) channelNames() (names []string) {
	for _, c := range a.want.Channels {
		names = append(names, c.Name)
	}
	for _, r := range a.want.Rules {
		names = append(names, r.Channels...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func (a *applying) channelSecrets() []job.Secret {
	var uses []job.SecretUse
	for i := range a.want.Channels {
		uses = append(uses, a.want.Channels[i].Secrets()...)
	}
	return job.SecretNames(uses)
}

// checkAlerts checks channels and rules against everything that they name. It returns Problems, or
// nil.
func (a *applying) checkAlerts(channels map[string]alert.Definition, secrets map[job.AppSecret]bool) error {
	var p job.Problems
	within := func(list string, i int, more job.Problems) {
		for _, q := range more {
			p.Put(fmt.Sprintf("%s[%d].%s", list, i, q.Field), q.Text)
		}
	}

	types := map[string]job.ChannelType{}
	for name, row := range channels {
		var c job.AlertChannel
		_ = json.Unmarshal([]byte(row.Spec), &c) // an unreadable channel has no type
		types[name] = c.Type
	}
	for i := range a.want.Channels {
		c := &a.want.Channels[i]
		if was, there := types[c.Name]; there && was != job.ChannelHeartbeat && c.Type == job.ChannelHeartbeat {
			within("channels", i, job.Wrong("type", problem.HeartbeatOfChannel, was))
		}
		types[c.Name] = c.Type
		within("channels", i, c.MissingSecrets(secrets))
	}
	for i := range a.want.Rules {
		within("rules", i, a.want.Rules[i].MissingChannels(types))
	}
	if p == nil {
		return nil
	}
	return p
}

// writeAlerts writes the channels and rules that differ. In the lock order, only retention rules
// and the audit come after them.
func (a *applying) writeAlerts(tx *sql.Tx, b batch) (lines []*job.Entry, err error) {
	if len(a.channels)+len(a.rules) == 0 {
		return nil, nil
	}
	secrets, err := trip.ShareSecrets(tx, nil, a.channelSecrets())
	if err != nil {
		return nil, err
	}
	channels, err := alert.LockDefinitions(tx, alert.ChannelTable, a.channelNames())
	if err != nil {
		return nil, err
	}
	if err := a.checkAlerts(channels, secrets); err != nil {
		return nil, err
	}

	written, err := a.writeAlertsOf(tx, b, alert.ChannelTable, a.channels, channels)
	if err != nil {
		return nil, err
	}
	names := make([]string, len(a.rules))
	for i := range a.rules {
		names[i] = a.rules[i].name
	}
	rules, err := alert.LockDefinitions(tx, alert.RuleTable, names)
	if err != nil {
		return nil, err
	}
	more, err := a.writeAlertsOf(tx, b, alert.RuleTable, a.rules, rules)
	return append(written, more...), err
}

// writeAlertsOf writes the differences in one of the two tables. The transaction has locked rows.
func (a *applying) writeAlertsOf(
	tx *sql.Tx, b batch, t alert.Table, list []appliedAlert, rows map[string]alert.Definition,
) (lines []*job.Entry, err error) {
	made := false
	for i := range list {
		o := &list[i]
		row := rows[o.name]
		if row.ID != o.was.ID || row.Version != o.was.Version {
			return nil, errAgain
		}
		if row.Spec == o.text && row.ID != 0 {
			continue
		}
		line, err := a.writeAlert(tx, b, t, row, o)
		if errors.Is(err, sql.ErrExists) {
			err = errAgain
		}
		if err != nil {
			return nil, err
		}
		made = made || row.ID == 0
		lines = append(lines, line)
	}
	if !made {
		return lines, nil
	}

	field, most := "rules", job.MaxAlertRules
	if t == alert.ChannelTable {
		field, most = "channels", job.MaxAlertChannels
	}

	all, err := alert.AllDefinitions(tx, t)
	if err == nil && len(all) > most {
		err = job.Wrong(field, problem.TooManyWanted, len(all), most)
	}
	return lines, err
}

// writeAlert updates the row of a channel or a rule. If row is zero, it inserts a new row.
func (a *applying) writeAlert(
	tx *sql.Tx, b batch, t alert.Table, row alert.Definition, o *appliedAlert,
) (*job.Entry, error) {
	kind := job.KindAlertRule
	if t == alert.ChannelTable {
		kind = job.KindAlertChannel
	}
	line := &job.Entry{Action: job.ActionUpdate, Kind: kind, Name: o.name, Was: row.Spec, Became: o.text}
	row.Name, row.Spec, row.Updated, row.By = o.name, o.text, max(a.now, row.Updated+1), b.actor.Who

	var err error
	if row.ID != 0 {
		err = alert.UpdateDefinition(tx, t, &row)
	} else {
		row.Created, row.Updated, line.Action = a.now, a.now, job.ActionCreate
		err = alert.InsertDefinition(tx, t, &row)
	}
	line.Ref = row.ID
	return line, err
}
