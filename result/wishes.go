package result

import (
	"context"
	"log/slog"
	"time"

	"go-crontab/sql"
	"go-crontab/sql/trip"
)

// Wishes finds executing runs of this session that must be killed, because of a request or because
// a later due time replaces them. Any node may write such a wish, so nodes need not reach each
// other.
type Wishes struct {
	DB      *sql.DB
	Session Session
	Busy    func() bool // reports that a run executes here
	Kill    func(l trip.Launch, replaced bool)
	Log     *slog.Logger

	signal chan struct{}
}

// wishPeriod bounds the time until a node sees a wish of another node. A look reads the rows of all
// runs of the session.
const wishPeriod = 500 * time.Millisecond

// NewWishes completes wishes. The caller runs them.
func NewWishes(w Wishes) *Wishes {
	w.signal = make(chan struct{}, 1)
	return &w
}

// Look makes the next look come at once: this node has written a wish itself.
func (w *Wishes) Look() {
	select {
	case w.signal <- struct{}{}:
	default:
	}
}

// Run looks until ctx is over.
func (w *Wishes) Run(ctx context.Context) error {
	tick := time.NewTicker(wishPeriod)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		case <-w.signal:
		}
		if err := w.look(ctx); err != nil && ctx.Err() == nil {
			w.Log.Warn("cannot read kill requests, trying again", "error", err)
		}
	}
}

// look kills the runs at each look until they have ended: repeated kills do no harm.
func (w *Wishes) look(ctx context.Context) error {
	if !w.Busy() {
		return nil
	}
	wishes, err := trip.Wishes(w.DB.Reader(ctx), w.Session.Number())
	for _, wish := range wishes {
		w.Kill(wish.Launch, wish.Replace)
	}
	return err
}
