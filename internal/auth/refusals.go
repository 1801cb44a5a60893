package auth

import (
	"context"
	"fmt"
	"sync"
	"time"

	"go-crontab/job"
	"go-crontab/sql"
)

// refusals bounds the audit lines of refused requests: those of each address or name, and all
// together. A line says how many earlier refusals got no line.
type refusals struct {
	each, all Limiter

	mu     sync.Mutex
	silent map[string]int // refusals without a line, by address or name
}

// newStrangers returns the bounds for callers that were not identified: one line a minute for each
// address.
func newStrangers() refusals {
	return refusals{each: Limiter{Every: time.Minute, Burst: 1}, all: Limiter{Every: 10 * time.Second, Burst: 30}}
}

// newForbidden returns the bounds for known callers that lack the permission for a request.
// Strangers cannot use up these bounds. A caller may get several lines at once, because each line
// may be about another request.
func newForbidden() refusals {
	return refusals{each: Limiter{Every: time.Minute, Burst: 10}, all: Limiter{Every: 10 * time.Second, Burst: 60}}
}

// due reports whether a refusal gets an audit line. silent is the number of earlier refusals
// without a line.
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

// Refuse writes an audit line about a caller that was not accepted, unless its address has used up
// its lines. A failed write is only logged, because the request is refused anyway.
func (g *Gate) Refuse(ctx context.Context, refused *Refused, now time.Time) {
	origin := job.ActorOf(ctx).Origin
	silent, due := g.refusals.due(AddressKey(origin), now)
	if !due {
		return
	}
	g.noteRefusal(ctx, &job.Entry{
		Actor: job.Actor{Who: job.Anonymous, Origin: origin}, Kind: KindLogin, Name: refused.Name,
		Reason: folded(refused.Why, silent, "address"),
	})
}

// Forbid writes an audit line about a known caller that asked for more than it may do, unless
// there were many such lines lately. If the request was refused before its caller was looked up, p
// is nil.
func (g *Gate) Forbid(ctx context.Context, p *Principal, route, why string, now time.Time) {
	line := &job.Entry{
		Actor: job.Actor{Who: job.Anonymous, Origin: job.ActorOf(ctx).Origin}, Kind: KindRequest, Name: route,
	}
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

// folded returns a reason with the number of refusals that got no line.
func folded(why string, silent int, whose string) string {
	if silent == 0 {
		return why
	}
	return fmt.Sprintf("%s; %d more were refused since the last line of this %s", why, silent, whose)
}

// noteRefusal writes the audit line of a refusal. If we die before the commit, there is no line.
// That does no harm, because the refused request has changed nothing.
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
		g.log.Warn("cannot write a refused access to the audit",
			"from", line.Origin, "who", line.Who, "why", line.Reason,
			"error", err)
	}
}
