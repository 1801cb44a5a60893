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

// MaxAge is for how long a node goes by what it has read of a secret, or by that there is none.
const MaxAge = 2 * time.Second

// readMost bounds one look into the database. Runs wait for as long as they may begin, which is mostly shorter: what comes
// of the look then is for those who come next.
const readMost = 5 * time.Second

// Reader reads the values of secrets, for runs. The zero value but for its fields is ready for use.
//
// It takes one connection, however many ask. Who asks while it looks into the database waits for what it finds, or is in
// the next look, together with all others who wait.
type Reader struct {
	DB   *sql.DB
	Keys *Ring // nil: none can be opened

	mu    sync.Mutex
	known map[job.AppSecret]known
	under *look // that is under way; nil: none is
	next  *look // for when that one is over; nil: nobody waits for it
}

// known is a secret that was read a moment ago, sealed as it is in its row.
type known struct {
	row *Row      // nil: there is none
	at  time.Time // when the look began
}

// look is one look into the database, for all who wait for it.
type look struct {
	names map[job.AppSecret]bool // not changed any more once it has begun
	began time.Time
	over  chan struct{} // closed when the rest is known

	rows map[job.AppSecret]*Row // those that exist
	err  error
}

// Away is the error of a look that found no database. It may be well a moment later.
type Away struct{ Err error }

func (a *Away) Error() string   { return "secrets cannot be read: " + a.Err.Error() }
func (a *Away) Unwrap() error   { return a.Err }
func (a *Away) Temporary() bool { return true }

// Values returns the values of the named secrets that jobs of an app may use: the app's own, or else those of all apps.
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
		value, err := r.Keys.open(row)
		if err != nil {
			return nil, fmt.Errorf("secret %s: %w", row.Name, err)
		}
		values[row.Name] = value
	}
	return values, nil
}

// wanted lists the secrets of an app, and behind them those of all apps.
func wanted(app string, names []job.Secret) []job.AppSecret {
	var out []job.AppSecret
	for _, of := range slices.Compact([]string{app, ""}) {
		for _, name := range names {
			out = append(out, job.AppSecret{App: of, Name: name})
		}
	}
	return out
}

// rows returns the rows that exist, in the order in which they are wanted. None of them is older than MaxAge was when the
// caller asked, which is now.
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

// join needs mu. It returns the look that tells of some secrets to one who asks now: the one under way, however long that
// takes, if it has not begun too long ago; or else the next.
func (r *Reader) join(names []job.AppSecret, now time.Time) *look {
	if l := r.under; l != nil && now.Sub(l.began) <= MaxAge && l.has(names) {
		return l
	}
	if r.next == nil {
		r.next = &look{names: map[job.AppSecret]bool{}, over: make(chan struct{})}
	}
	l := r.next
	for _, name := range names {
		l.names[name] = true
	}
	if r.under == nil {
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

// begin needs mu. It begins the next look, if there is to be one.
func (r *Reader) begin(now time.Time) {
	if r.under, r.next = r.next, nil; r.under != nil {
		r.under.began = now
		go r.read(r.under)
	}
}

// read looks into the database. It belongs to nobody who waits: one who is killed does not take it from the others.
func (r *Reader) read(l *look) {
	ctx, cancel := context.WithTimeout(context.Background(), readMost)
	defer cancel()
	apps, names := map[string]bool{}, map[job.Secret]bool{}
	for n := range l.names {
		apps[n.App], names[n.Name] = true, true
	}
	delete(apps, "") // those of all apps are read anyway
	read, err := readSealed(r.DB.Reader(ctx), slices.Collect(maps.Keys(apps)), slices.Collect(maps.Keys(names)))
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

// remember needs mu. It keeps what a look has found, and lets go what is too old.
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

// recall needs mu. It returns what is known, and which names are to be looked up.
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
