package alert

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"go-crontab/job"
	"go-crontab/job/problem"
	"go-crontab/sql"
	"go-crontab/sql/trip"
)

// Store changes channels, rules and silences. Each change writes its audit line.
type Store struct{ DB *sql.DB }

// InUse is the error when a channel cannot be deleted, because rules name it.
type InUse struct {
	Name string
	By   []string
}

func (e *InUse) Error() string {
	return fmt.Sprintf("the channel %q is used by the rules %s", e.Name, strings.Join(e.By, ", "))
}

// putTries bounds how often a change starts over because another change has created the same name.
const putTries = 3

// PutChannel creates or replaces a channel, and reports whether it is new. If the definition is
// invalid, the error is job.Problems.
func (s *Store) PutChannel(ctx context.Context, c job.AlertChannel) (row Definition, isNew bool, err error) {
	c.Defaults()
	if err := c.Validate(); err != nil {
		return row, false, err
	}
	return s.put(ctx, ChannelTable, c.Name, &c,
		func(tx *sql.Tx) error { return secretsThere(tx, &c) },
		func(tx *sql.Tx) error { return unnamed(tx, &c) })
}

// PutRule creates or replaces a rule, and reports whether it is new. If the definition is invalid,
// the error is job.Problems.
func (s *Store) PutRule(ctx context.Context, r job.AlertRule) (row Definition, isNew bool, err error) {
	r.Defaults()
	if err := r.Validate(); err != nil {
		return row, false, err
	}
	return s.put(ctx, RuleTable, r.Name, &r, func(tx *sql.Tx) error {
		channels, err := shareDefinitions(tx, ChannelTable, r.Channels)
		if err != nil {
			return err
		}
		return problems(r.MissingChannels(typesOf(channels)))
	}, func(*sql.Tx) error { return nil })
}

func problems(p job.Problems) error {
	if p == nil {
		return nil
	}
	return p
}

func typesOf(rows map[string]Definition) map[string]job.ChannelType {
	types := map[string]job.ChannelType{}
	for name, row := range rows {
		var c job.AlertChannel
		_ = json.Unmarshal([]byte(row.Spec), &c) // an undecodable channel has no type, and fails when it is used
		types[name] = c.Type
	}
	return types
}

// secretsThere checks that the secrets of a channel exist.
func secretsThere(tx *sql.Tx, c *job.AlertChannel) error {
	exist, err := trip.ShareSecrets(tx, nil, job.SecretNames(c.Secrets()))
	if err != nil {
		return err
	}
	return problems(c.MissingSecrets(exist))
}

// unnamed checks that no rule names a channel that will become a heartbeat.
func unnamed(tx *sql.Tx, c *job.AlertChannel) error {
	if c.Type != job.ChannelHeartbeat {
		return nil
	}
	by, err := rulesOf(tx, c.Name)
	if err == nil && len(by) > 0 {
		err = job.Wrong("type", problem.HeartbeatOfRules, strings.Join(by, ", "))
	}
	return err
}

// rulesOf lists the rules that name a channel. The caller has locked the channel's row, so no
// further rule can name it.
func rulesOf(tx *sql.Tx, channel string) (by []string, err error) {
	rules, err := AllDefinitions(tx, RuleTable)
	for _, row := range rules {
		var r job.AlertRule
		_ = json.Unmarshal([]byte(row.Spec), &r)
		for _, name := range r.Channels {
			if name == channel {
				by = append(by, row.Name)
			}
		}
	}
	return by, err
}

func most(t Table) int {
	if t == ChannelTable {
		return job.MaxAlertChannels
	}
	return job.MaxAlertRules
}

func kindOf(t Table) job.Kind {
	if t == ChannelTable {
		return job.KindAlertChannel
	}
	return job.KindAlertRule
}

// put creates or replaces a definition. before checks rows that must be locked before the
// definition. after checks rows that must be locked after it: see LockDefinitions.
func (s *Store) put(
	ctx context.Context, t Table, name string, spec any, before, after func(*sql.Tx) error,
) (row Definition, isNew bool, err error) {
	text, err := json.Marshal(spec)
	if err != nil {
		return row, false, err
	}

	for try := 1; ; try++ {
		err = s.DB.RecordAt(ctx, func(tx *sql.Tx, now job.Micros) (*job.Entry, error) {
			if err := before(tx); err != nil {
				return nil, err
			}

			found, err := LockDefinitions(tx, t, []string{name})
			if err != nil {
				return nil, err
			}

			if err := after(tx); err != nil {
				return nil, err
			}

			row, isNew = found[name], false
			if err := job.CheckPrecondition(ctx, row.ID != 0, row.Version); err != nil {
				return nil, err
			}

			line := &job.Entry{
				Kind: kindOf(t), Name: name, Action: job.ActionUpdate, Was: row.Spec, Became: string(text),
			}
			if row.Spec == string(text) {
				return nil, nil
			}

			// Update an existing definition.
			row.Name, row.Spec, row.By = name, string(text), job.ActorOf(ctx).Who
			row.Updated = max(now, row.Updated+1)
			if row.ID != 0 {
				line.Ref = row.ID
				return line, UpdateDefinition(tx, t, &row)
			}

			// Create a new one.
			all, err := AllDefinitions(tx, t)
			if err != nil {
				return nil, err
			}
			if len(all) >= most(t) {
				return nil, job.Wrong("name", problem.TooManyKept, most(t))
			}
			isNew, row.Created, row.Updated = true, now, now
			err = InsertDefinition(tx, t, &row)
			line.Action, line.Ref = job.ActionCreate, row.ID
			return line, err
		})

		if !errors.Is(err, sql.ErrExists) || try == putTries {
			return row, isNew, err
		}
		// Another transaction has just created it.
	}
}

// DeleteChannel deletes a channel. If rules name it, the error is *InUse. If there is no such
// channel, the error is sql.ErrNotFound.
func (s *Store) DeleteChannel(ctx context.Context, name string) error {
	return s.remove(ctx, ChannelTable, name, func(tx *sql.Tx) error {
		by, err := rulesOf(tx, name)
		if err == nil && len(by) > 0 {
			err = &InUse{name, by}
		}
		return err
	})
}

// DeleteRule deletes a rule. Its alerts end.
func (s *Store) DeleteRule(ctx context.Context, name string) error {
	return s.remove(ctx, RuleTable, name, func(*sql.Tx) error { return nil })
}

// remove deletes a definition that check accepts. If there is none, the error is sql.ErrNotFound.
func (s *Store) remove(ctx context.Context, t Table, name string, check func(*sql.Tx) error) error {
	return s.DB.RecordAt(ctx, func(tx *sql.Tx, _ job.Micros) (*job.Entry, error) {
		found, err := LockDefinitions(tx, t, []string{name})
		if err != nil {
			return nil, err
		}
		row, there := found[name]
		if !there {
			return nil, sql.ErrNotFound
		}
		if err := check(tx); err != nil {
			return nil, err
		}

		line := &job.Entry{Kind: kindOf(t), Ref: row.ID, Name: name, Action: job.ActionDelete, Was: row.Spec}
		return line, deleteDefinition(tx, t, row.ID)
	})
}

// AddSilence starts a silence and sets its id. If the silence is invalid, the error is
// job.Problems.
func (s *Store) AddSilence(ctx context.Context, n *job.Silence) error {
	return s.DB.RecordAt(ctx, func(tx *sql.Tx, now job.Micros) (*job.Entry, error) {
		n.Who, n.Created = job.ActorOf(ctx).Who, now
		if err := n.Check(now); err != nil {
			return nil, err
		}

		count, err := countSilences(tx, now)
		if err != nil {
			return nil, err
		}
		if count >= job.MaxSilences {
			return nil, job.Wrong("until", problem.TooManySilences, count)
		}

		if err := insertSilence(tx, n); err != nil {
			return nil, err
		}
		return silenceLine(n, job.ActionCreate), nil
	})
}

// EndSilence ends a silence now, unless it has already ended. may returns an error if the caller
// may not end this silence. If the id is unknown, the error is sql.ErrNotFound.
func (s *Store) EndSilence(ctx context.Context, id int64, may func(job.Silence) error) (out job.Silence, err error) {
	err = s.DB.RecordAt(ctx, func(tx *sql.Tx, now job.Micros) (*job.Entry, error) {
		if out, err = lockSilence(tx, id); err != nil {
			return nil, err
		}
		if err := may(out); err != nil {
			return nil, err
		}

		if out.Until <= now {
			return nil, nil
		}
		line := silenceLine(&out, job.ActionDelete)
		out.Until = now
		return line, endSilence(tx, id, now)
	})
	return out, err
}

// silenceLine returns the audit line of a silence.
func silenceLine(s *job.Silence, action job.Action) *job.Entry {
	text, _ := json.Marshal(map[string]string{ // cannot fail
		"app": s.App, "job": s.Job, "rule": s.Rule, "until": s.Until.String(),
	})
	name := "everything"
	switch {
	case s.Job != "":
		name = s.App + "/" + s.Job
	case s.App != "":
		name = s.App
	case s.Rule != "":
		name = s.Rule
	}

	e := &job.Entry{
		Kind: job.KindAlertSilence, Ref: s.ID, App: s.App, Name: name, Action: action, Reason: s.Reason,
	}
	if action == job.ActionDelete {
		e.Was = string(text)
	} else {
		e.Became = string(text)
	}
	return e
}

// DecodeChannel decodes a channel's definition.
func DecodeChannel(row *Definition) (c job.AlertChannel, err error) {
	err = json.Unmarshal([]byte(row.Spec), &c)
	return c, err
}

// DecodeRule decodes a rule's definition. It returns an error for an unusable definition, which
// only a change outside the program can cause.
func DecodeRule(row *Definition) (r job.AlertRule, err error) {
	if err = json.Unmarshal([]byte(row.Spec), &r); err == nil {
		r.Defaults()
		err = r.CheckStored()
	}
	return r, err
}
