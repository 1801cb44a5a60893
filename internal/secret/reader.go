package secret

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"go-crontab/job"
	"go-crontab/sql"
)

// MaxAge is how long a node uses the result of a read, even the result that a secret does not
// exist.
const MaxAge = 2 * time.Second

// readMost bounds one read of the database. Usually a run stops waiting earlier. Then the result
// serves the next runs.
const readMost = 5 * time.Second

// Reader reads the values of secrets for runs. It is safe for concurrent use.
//
// It uses one connection for any number of callers. If the read in progress covers a caller's
// secrets, the caller waits for it. If not, the caller shares the next read.
type Reader struct {
	db   *sql.DB
	keys *Ring

	mu      sync.Mutex
	known   map[job.AppSecret]known
	current *look // the read in progress; nil: none
	next    *look // the read after current; nil: no caller needs one
}

// NewReader returns a reader. Without keys it opens no secret.
func NewReader(db *sql.DB, keys *Ring) *Reader { return &Reader{db: db, keys: keys} }

// known is the cached row of a secret, still sealed.
type known struct {
	row *Row      // nil: the secret does not exist
	at  time.Time // when the read began
}

// look is a read of the database that several callers share.
type look struct {
	names map[job.AppSecret]bool // fixed once the read has begun
	began time.Time
	over  chan struct{} // closed when the fields below are set

	rows map[job.AppSecret]*Row // the secrets that exist
	err  error
}

// Away is the error of a read while MySQL is out of reach. A retry may succeed.
type Away struct{ Err error }

func (a *Away) Error() string   { return "cannot read secrets: " + a.Err.Error() }
func (a *Away) Unwrap() error   { return a.Err }
func (a *Away) Temporary() bool { return true }

// Values returns the values of the named secrets that an app's jobs may use. If both the app and
// no app have a secret of a name, the app's secret is used. If a name has no secret, the result
// has no value for it. The errors are Away, ErrNoKey, and errors of rows that do not open.
func (r *Reader) Values(ctx context.Context, app string, names []job.Secret) (map[job.Secret]string, error) {
	rows, err := r.rows(ctx, wanted(app, names), time.Now())
	if err != nil {
		return nil, err
	}

	values := make(map[job.Secret]string, len(rows))
	for _, row := range rows {
		if _, own := values[row.Name]; own {
			continue
		}

		value, err := r.keys.open(row)
		if err != nil {
			return nil, fmt.Errorf("secret %s: %w", row.Name, err)
		}
		values[row.Name] = value
	}

	return values, nil
}

// wanted lists the app's own secrets, then the secrets that belong to no app.
func wanted(app string, names []job.Secret) []job.AppSecret {
	var out []job.AppSecret
	for _, of := range slices.Compact([]string{app, ""}) {
		for _, name := range names {
			out = append(out, job.AppSecret{App: of, Name: name})
		}
	}
	return out
}

// rows returns the rows that exist, in the order of names. now is when the caller asked. At that
// instant, no returned row was older than MaxAge.
func (r *Reader) rows(ctx context.Context, names []job.AppSecret, now time.Time) ([]*Row, error) {
	r.mu.Lock()
	found, unknown := r.recall(names, now)
	if len(unknown) == 0 {
		r.mu.Unlock()
		return inOrder(found, names), nil
	}

	l := r.join(unknown, now)
	r.mu.Unlock()

	select {
	case <-l.over:
	case <-ctx.Done():
		return nil, &Away{context.Cause(ctx)}
	}

	if l.err != nil {
		return nil, l.err
	}
	for _, name := range unknown {
		if row := l.rows[name]; row != nil {
			found[name] = row
		}
	}

	return inOrder(found, names), nil
}

func inOrder(found map[job.AppSecret]*Row, names []job.AppSecret) []*Row {
	out := make([]*Row, 0, len(found))
	for _, name := range names {
		if row := found[name]; row != nil {
			out = append(out, row)
		}
	}
	return out
}

// join needs mu. It returns a read that covers names for a caller at now. That is the read in
// progress if it began recently enough, even if it takes long. Otherwise it is the next read.
func (r *Reader) join(names []job.AppSecret, now time.Time) *look {
	if l := r.current; l != nil && now.Sub(l.began) <= MaxAge && l.has(names) {
		return l
	}
	if r.next == nil {
		r.next = &look{names: map[job.AppSecret]bool{}, over: make(chan struct{})}
	}

	l := r.next
	for _, name := range names {
		l.names[name] = true
	}

	if r.current == nil {
		r.begin(now)
	}
	return l
}

func (l *look) has(names []job.AppSecret) bool {
	for _, name := range names {
		if !l.names[name] {
			return false
		}
	}
	return true
}

// begin needs mu. It begins the next read if a caller needs one.
func (r *Reader) begin(now time.Time) {
	if r.current, r.next = r.next, nil; r.current != nil {
		r.current.began = now
		go r.read(r.current)
	}
}

// read does one read of the database. It does not use the contexts of its callers, so a caller
// that gives up does not disturb the others.
func (r *Reader) read(l *look) {
	ctx, cancel := context.WithTimeout(context.Background(), readMost)
	defer cancel()

	apps, names := map[string]bool{}, map[job.Secret]bool{}
	for n := range l.names {
		apps[n.App], names[n.Name] = true, true
	}
	delete(apps, "") // secrets that belong to no app are always read

	read, err := readSealed(r.db.Reader(ctx), slices.Collect(maps.Keys(apps)), slices.Collect(maps.Keys(names)))
	if sql.IsAway(err) {
		err = &Away{err}
	}

	r.mu.Lock()
	defer r.mu.Unlock()
	if l.err = err; err == nil {
		l.rows = make(map[job.AppSecret]*Row, len(read))
		for i := range read {
			l.rows[job.AppSecret{App: read[i].App, Name: read[i].Name}] = &read[i]
		}
		r.remember(l)
	}

	close(l.over)
	r.begin(time.Now())
}

// remember needs mu. It caches the result of a read and drops rows that are too old.
func (r *Reader) remember(l *look) {
	for name, k := range r.known {
		if l.began.Sub(k.at) > MaxAge {
			delete(r.known, name)
		}
	}

	if r.known == nil {
		r.known = map[job.AppSecret]known{}
	}
	for name := range l.names {
		r.known[name] = known{l.rows[name], l.began}
	}
}

// recall needs mu. It returns the cached rows and the names that must be read.
func (r *Reader) recall(names []job.AppSecret, now time.Time) (found map[job.AppSecret]*Row, unknown []job.AppSecret) {
	found = map[job.AppSecret]*Row{}
	for _, name := range names {
		k, is := r.known[name]
		switch {
		case !is || now.Sub(k.at) > MaxAge:
			unknown = append(unknown, name)
		case k.row != nil:
			found[name] = k.row
		}
	}

	return found, unknown
}
