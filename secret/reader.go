package secret

import (
	"context"
	"fmt"
	"sync"
	"time"

	"go-crontab/job"
	"go-crontab/sql"
)

// MaxAge is for how long a node goes by what it has read of a secret, or by that there is none.
const MaxAge = 2 * time.Second

// Reader reads the values of secrets, for runs. The zero value but for its fields is ready for use.
type Reader struct {
	DB   *sql.DB
	Keys *Ring // nil: none can be opened

	mu    sync.Mutex
	known map[job.Secret]known
}

// known is a secret that was read a moment ago, sealed as it is in its row.
type known struct {
	row *sql.SecretRow // nil: there is none
	at  time.Time
}

// Away is the error of a look that found no database. It may be well a moment later.
type Away struct{ Err error }

func (a *Away) Error() string   { return "secrets cannot be read: " + a.Err.Error() }
func (a *Away) Unwrap() error   { return a.Err }
func (a *Away) Temporary() bool { return true }

// Values returns the values of those of some secrets that there are and that jobs of an app may use.
func (r *Reader) Values(ctx context.Context, app string, names []job.Secret) (map[job.Secret]string, error) {
	rows, err := r.rows(ctx, names, time.Now())
	if err != nil {
		return nil, err
	}
	values := make(map[job.Secret]string, len(rows))
	for _, row := range rows {
		if row.App != "" && row.App != app {
			continue
		}
		value, err := r.Keys.open(row)
		if err != nil {
			return nil, fmt.Errorf("secret %s: %w", row.Name, err)
		}
		values[row.Name] = value
	}
	return values, nil
}

// rows returns the rows that there are, of which none is older than MaxAge.
func (r *Reader) rows(ctx context.Context, names []job.Secret, now time.Time) ([]*sql.SecretRow, error) {
	found, unknown := r.recall(names, now)
	if len(unknown) == 0 {
		return found, nil
	}
	read, err := r.DB.SealedSecrets(ctx, unknown)
	if sql.IsAway(err) {
		return nil, &Away{err}
	}
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for name, k := range r.known {
		if now.Sub(k.at) > MaxAge {
			delete(r.known, name)
		}
	}
	if r.known == nil {
		r.known = map[job.Secret]known{}
	}
	for _, name := range unknown {
		r.known[name] = known{nil, now}
	}
	for i := range read {
		r.known[read[i].Name] = known{&read[i], now}
		found = append(found, &read[i])
	}
	return found, nil
}

// recall returns what is known, and which names are to be looked up.
func (r *Reader) recall(names []job.Secret, now time.Time) (found []*sql.SecretRow, unknown []job.Secret) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, name := range names {
		k, is := r.known[name]
		switch {
		case !is || now.Sub(k.at) > MaxAge:
			unknown = append(unknown, name)
		case k.row != nil:
			found = append(found, k.row)
		}
	}
	return found, unknown
}
