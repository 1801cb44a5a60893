package result

import (
	"context"
	"log/slog"
	"time"

	"go-crontab/internal/loop"
	"go-crontab/sql"
	"go-crontab/sql/trip"
)

// WishesConfig is what Wishes work with.
type WishesConfig struct {
	DB        *sql.DB
	Session   Session
	Executing Killer
	Wake      loop.Wake // up when this node has written a wish itself
	Log       *slog.Logger
}

// Killer is the set of executing runs.
type Killer interface {
	Len() int
	Kill(l trip.Launch, replaced bool)
}

// Wishes finds executing runs of this session that must be killed, because of a request or because
// a later due time replaces them. Any node may write such a wish to the run's row, so nodes need
// not reach each other.
type Wishes struct{ WishesConfig }

// wishPeriod bounds the time until a node sees a wish of another node. A look reads the rows of all
// runs of the session.
const wishPeriod = 500 * time.Millisecond

// NewWishes returns wishes. The caller runs them.
func NewWishes(cfg WishesConfig) *Wishes { return &Wishes{cfg} }

// Run looks until ctx is over.
func (w *Wishes) Run(ctx context.Context) error {
	return loop.Loop{
		First:  wishPeriod,
		Period: wishPeriod,
		AtRate: true,
		Wake:   w.Wake,
		Log:    w.Log,
		Failed: "cannot read kill requests, trying again",
	}.Run(ctx, loop.Each(w.look))
}

// look kills the runs. Each look kills a run again until the run has ended, because repeated kills
// do no harm.
func (w *Wishes) look(ctx context.Context) error {
	if w.Executing.Len() == 0 {
		return loop.ErrSkipped
	}
	wishes, err := trip.Wishes(w.DB.Reader(ctx), w.Session.Number())
	for _, wish := range wishes {
		w.Executing.Kill(wish.Launch, wish.Replace)
	}
	return err
}
