package secret

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"go-crontab/internal/alert"
	"go-crontab/job"
	"go-crontab/sql"
)

// ErrNoKey is the error of a node without a key: it can neither set nor use secrets.
var ErrNoKey = errors.New(
	"this node has no key for secrets; give it one: " +
		"--secret-key-file, GOCRONTAB_SECRET_KEY or GOCRONTAB_SECRET_KEY_FILE")

// Store writes secrets. Two changes of one secret wait for each other, because each locks its row.
type Store struct {
	DB   *sql.DB
	Keys *Ring // nil: values can be neither set nor rotated
}

// New is a secret and its new value.
type New struct {
	job.AppSecret
	Value string
}

// Put sets the value of a secret, and reports whether the secret is new. Runs that begin later
// than [MaxAge] after the answer use the new value, on all nodes. The error ErrNoKey means that
// this node cannot seal.
func (s *Store) Put(ctx context.Context, n New) (isNew bool, err error) {
	if err := job.CheckSecret(n.Name, n.App, n.Value); err != nil {
		return false, err
	}
	if s.Keys == nil {
		return false, ErrNoKey
	}

	for try := 1; ; try++ {
		isNew, err = s.put(ctx, n)
		if !errors.Is(err, sql.ErrExists) || try == putTries {
			return isNew, err
		}
		// Another request has just created it: try again as an update.
	}
}

const putTries = 3

func (s *Store) put(ctx context.Context, n New) (isNew bool, err error) {
	err = s.DB.RecordAt(ctx, func(tx *sql.Tx, now job.Micros) (*job.Entry, error) {
		row, err := lock(tx, n.AppSecret)
		isNew = errors.Is(err, sql.ErrNotFound)
		if err != nil && !isNew {
			return nil, err
		}
		if isNew {
			row = Row{Name: n.Name, App: n.App, Created: now}
		}
		if err := job.CheckPrecondition(ctx, !isNew, 0); err != nil {
			return nil, err
		}

		row.Version, row.Updated, row.By = max(int64(now), row.Version+1), now, job.ActorOf(ctx).Who
		if err := s.Keys.seal(&row, n.Value); err != nil {
			return nil, err
		}
		if !isNew {
			return line(job.ActionUpdate, &row), update(tx, &row)
		}
		if err := insert(tx, &row); err != nil {
			return nil, err
		}

		return line(job.ActionCreate, &row), nil
	})

	return isNew, err
}

// someUsers is the most jobs that InUse lists.
const someUsers = 5

// Delete deletes a secret that is not in use. If it is in use, the error is *job.InUse with the
// users. If there is no such secret, the error is sql.ErrNotFound.
func (s *Store) Delete(ctx context.Context, which job.AppSecret) error {
	return s.DB.RecordAt(ctx, func(tx *sql.Tx, _ job.Micros) (*job.Entry, error) {
		row, err := lock(tx, which)
		if err != nil {
			return nil, err
		}

		users, err := users(tx, which, someUsers)
		if err != nil {
			return nil, err
		}
		if len(users) > 0 {
			return nil, &job.InUse{Kind: "secret", Name: string(which.Name), By: users}
		}

		// Alert channels can only use secrets that belong to no app.
		if which.App == "" {
			channels, err := channelsWith(tx, which.Name)
			if err != nil {
				return nil, err
			}
			if len(channels) > 0 {
				return nil, &job.InUse{Kind: "secret", Name: string(which.Name), By: channels}
			}
		}

		return line(job.ActionDelete, &row), remove(tx, row.ID)
	})
}

// channelsWith lists alert channels that name a secret. The caller has locked the secret's row, so
// no channel can begin to name it.
func channelsWith(tx *sql.Tx, name job.Secret) (out []job.Name, err error) {
	rows, err := alert.AllDefinitions(tx, alert.ChannelTable)
	for _, row := range rows {
		var c job.AlertChannel
		_ = json.Unmarshal([]byte(row.Spec), &c) // a definition that cannot be read uses no secret
		if slices.Contains(job.SecretNames(c.Secrets()), name) && len(out) < someUsers {
			out = append(out, job.Name{App: "alert channel", Name: row.Name})
		}
	}
	return out, err
}

// Rotated is the result of a rotation.
type Rotated struct {
	Key     string   // the key that seals all secrets now
	Rotated int      // number of secrets that another key had sealed
	Failed  []Failed // secrets that this node cannot open; they are unchanged
}

// Failed is a secret that cannot be opened.
type Failed struct {
	job.AppSecret
	Why string
}

// rotateAtOnce is the most secrets that one transaction seals.
const rotateAtOnce = 20

// Rotate seals every secret with the first key, except those that this key has already sealed. The
// values do not change. If we die in between, some secrets are done, and a second call does the
// others.
func (s *Store) Rotate(ctx context.Context) (Rotated, error) {
	if s.Keys == nil {
		return Rotated{}, ErrNoKey
	}

	out := Rotated{Key: s.Keys.IDs()[0]}
	for after := int64(0); ; {
		var done []int64
		var failed []Failed
		last := after
		err := s.DB.RecordAt(ctx, func(tx *sql.Tx, _ job.Micros) (*job.Entry, error) {
			done, failed, last = nil, nil, after
			rows, err := lockNotUnder(tx, out.Key, after, rotateAtOnce)
			if err != nil {
				return nil, err
			}

			for i := range rows {
				row := &rows[i]
				last = row.ID
				value, err := s.Keys.open(row)
				if err != nil {
					failed = append(failed, Failed{job.AppSecret{App: row.App, Name: row.Name}, err.Error()})
					continue
				}

				if err := s.Keys.seal(row, value); err != nil {
					return nil, err
				}
				if err := update(tx, row); err != nil {
					return nil, err
				}

				done = append(done, row.ID)
			}

			if len(done) == 0 {
				return nil, nil
			}
			return &job.Entry{Action: job.ActionRotate, Kind: job.KindSecret,
				Reason: fmt.Sprintf("%d secrets, to key %s", len(done), out.Key)}, nil
		})
		if err != nil {
			return Rotated{}, err
		}

		out.Rotated, out.Failed = out.Rotated+len(done), append(out.Failed, failed...)
		if last == after {
			return out, nil
		}

		after = last
	}
}

// line returns the audit line of a change of a secret. The line never has the value.
func line(action job.Action, s *Row) *job.Entry {
	return &job.Entry{Action: action, Kind: job.KindSecret, Ref: s.ID, App: s.App, Name: string(s.Name)}
}
