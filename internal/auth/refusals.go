package auth

import (
	"context"
	"fmt"
	"sync"
	"time"

	"go-crontab/job"
	"go-crontab/sql"
)

// refusals bounds the audit lines of requests that are refused: some for each address or name, and some for all of them
// together. A line says how many came before it that have none.
type refusals struct {
	each, all Limiter

	mu     sync.Mutex
	silent map[string]int // refusals without a line, by address or name
}

// newStrangers bounds those of whom nobody knows who they are: one line a minute for each address.
func newStrangers() refusals {
	return refusals{each: Limiter{Every: time.Minute, Burst: 1}, all: Limiter{Every: 10 * time.Second, Burst: 30}}
}

// newForbidden bounds those who are known and may not do what they ask for. They have lines of their own, so that no stranger
// can use them up, and a few at once, as each may be about another thing.
func newForbidden() refusals {
	return refusals{each: Limiter{Every: time.Minute, Burst: 10}, all: Limiter{Every: 10 * time.Second, Burst: 60}}
}

// due reports whether a refusal gets its line, and how many did not before.
func (r *refusals) due(key string, now time.Time) (silent int, due bool) {
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
	silent, due := g.refusals.due(AddressKey(origin), now)
	if !due {
		return
	}
	g.noteRefusal(ctx, &job.Entry{
		Actor: job.Actor{Who: job.Anonymous, Origin: origin}, Kind: KindLogin, Name: refused.Name, Reason: folded(refused.Why, silent, "address"),
	})
}

// Forbid writes into the audit that somebody who is known asked for what they may not do, unless enough lines say so already.
// p is nil for a request that was refused before anybody asked who makes it.
func (g *Gate) Forbid(ctx context.Context, p *Principal, route, why string, now time.Time) {
	line := &job.Entry{Actor: job.Actor{Who: job.Anonymous, Origin: job.ActorOf(ctx).Origin}, Kind: KindRequest, Name: route}
	bound, key, whose := &g.refusals, AddressKey(line.Origin), "address"
	if p != nil {
		line.Who = p.Name
		bound, key, whose = &g.forbidden, p.Kind+" "+p.Name, "name"
	}

	silent, due := bound.due(key, now)
	if !due {
		return
	}
	line.Reason = folded(why, silent, whose)
	g.noteRefusal(ctx, line)
}

// folded is a reason that counts the refusals without a line.
func folded(why string, silent int, whose string) string {
	if silent == 0 {
		return why
	}
	return fmt.Sprintf("%s; %d more were refused since the last line of this %s", why, silent, whose)
}

// noteRefusal writes the line of a refusal. If we die before, there is none, and nothing was changed either.
func (g *Gate) noteRefusal(ctx context.Context, line *job.Entry) {
	line.Action = ActionRefuse
	err := g.db.Tx(ctx, func(tx *sql.Tx) (err error) {
		if line.At, err = tx.Now(); err != nil {
			return err
		}
		_, err = tx.InsertAudit(line)
		return err
	})
	if err != nil {
		g.log.Warn("a refusal is not in the audit", "from", line.Origin, "who", line.Who, "why", line.Reason, "error", err)
	}
}
