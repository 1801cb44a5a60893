package auth

import (
	"context"
	"fmt"
	"sync"
	"time"

	"go-crontab/job"
	"go-crontab/sql"
)

// refusals bounds the lines of the audit that those write who are not let in: one a minute for each address, and so
// many for all of them together. A line says how many came before it that have none.
type refusals struct {
	each, all Limiter

	mu     sync.Mutex
	silent map[string]int // refusals without a line, by address
}

func newRefusals() refusals {
	return refusals{each: Limiter{Every: time.Minute, Burst: 1}, all: Limiter{Every: 10 * time.Second, Burst: 30}}
}

// due tells whether a refusal from an address gets its line, and how many did not before.
func (r *refusals) due(address string, now time.Time) (silent int, due bool) {
	key := AddressKey(address)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.each.Wait(key, now) == 0 {
		if _, ok := r.all.Take("", now, 0); ok {
			r.each.Take(key, now, 0)
			silent = r.silent[key]
			delete(r.silent, key)
			return silent, true
		}
	}
	if r.silent == nil || len(r.silent) >= maxKeys {
		r.silent = map[string]int{}
	}
	r.silent[key]++
	return 0, false
}

// Refuse writes into the audit that somebody was not let in, unless there is a line of that address already. The
// request is refused whether that works or not.
func (g *Gate) Refuse(ctx context.Context, refused *Refused, now time.Time) {
	origin := job.ActorOf(ctx).Origin
	silent, due := g.refusals.due(origin, now)
	if !due {
		return
	}
	why := refused.Why
	if silent > 0 {
		why += fmt.Sprintf("; %d more were refused since the last line of this address", silent)
	}
	err := g.db.Tx(ctx, func(tx *sql.Tx) error {
		at, err := tx.Now()
		if err != nil {
			return err
		}
		_, err = tx.InsertAudit(&job.Entry{
			At: at, Actor: job.Actor{Who: job.Anonymous, Origin: origin}, Action: ActionRefuse, Kind: KindLogin, Name: refused.Name, Reason: why,
		})
		return err
	})
	if err != nil {
		g.log.Warn("a refusal is not in the audit", "from", origin, "why", why, "error", err)
	}
}
