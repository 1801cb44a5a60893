package schedule

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"go-crontab/job"
	"go-crontab/sql"
)

// Places knows which tasks this session may take. The tasks of a place are claimed by the nodes that match it, and
// these prefer buckets among themselves, as all nodes do for tasks that any of them may take: a due time whose job is for
// one node of ten must not wait until it is late because its bucket prefers another one.
//
// A place never changes, and neither do the labels of a session, so that what is known stays true; what is not known yet
// is not taken. All are read anew once a minute nevertheless: one may have been looked up on a server that had not heard of it yet,
// a failover may have given a number to another, and one may have come behind a greater one. A nil Places takes everything.
type Places struct {
	DB      *sql.DB
	Lookout *Lookout
	Labels  map[string]string // of this node, those of its handlers included
	// Members are the labels of the sessions that take work, in the order of their ids, as of the last look: which of
	// them is this one (-1 for none), and a number that changes with them, zero before the first look.
	Members func() (labels []map[string]string, index int, seen int64)
	Log     *slog.Logger

	mu     sync.Mutex
	byID   map[int]known
	newest int       // all up to this number were read
	anew   time.Time // when all were read
	group  *grouping
}

// known is a place that was read.
type known struct {
	text     string
	selector job.Selector
	broken   bool // a newer version wrote it, or a hand did: nobody here takes it
	mine     bool
}

// grouping says how the places are shared, for some members and as many places as were known.
type grouping struct {
	seen   int64
	places int
	shares []share
	others []int // places that are not this session's
	plain  bool  // no job wants anything of nodes: there is nothing to tell apart
}

// share are places that the same members take: the index-th of every of buckets is this session's.
type share struct {
	places    []int
	index, of int
}

const (
	placesPeriod = 500 * time.Millisecond
	// placesOverlap is how many numbers are read again: the transaction of a smaller one may have been the longer one.
	placesOverlap = 100
	// placesAnew is how long what is known may stand.
	placesAnew = time.Minute
)

// Run learns of new places until ctx ends.
func (p *Places) Run(ctx context.Context) error {
	wait := rand.N(placesPeriod / 10)
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(wait):
		}
		if wait = placesPeriod; p.knowsAll() {
			continue
		}
		if err := p.refresh(ctx); err != nil && ctx.Err() == nil {
			p.Log.Warn("cannot read where jobs may run, trying again", "error", err)
		}
	}
}

// knowsAll tells whether there was no newer place a moment ago. That of a transaction which was under way then has been
// read by the time at which it matters: a claim that meets an unknown place reads it.
func (p *Places) knowsAll() bool {
	g, ok := p.Lookout.seen()
	p.mu.Lock()
	defer p.mu.Unlock()
	return ok && p.byID != nil && g.LastPlace <= p.newest && time.Since(p.anew) < placesAnew
}

func (p *Places) refresh(ctx context.Context) error {
	p.mu.Lock()
	after, began := p.newest-placesOverlap, time.Now()
	anew := time.Since(p.anew) >= placesAnew
	p.mu.Unlock()
	if anew {
		after = 0
	}
	found, err := p.DB.Places(ctx, after)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if anew {
		p.byID, p.newest, p.anew, p.group = nil, 0, began, nil
	}
	p.note(found)
	for _, f := range found {
		p.newest = max(p.newest, f.ID) // not that of one that was looked up: those before it need not be known
	}
	return nil
}

// learn notes places that are known to be committed.
func (p *Places) learn(found []sql.Place) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.note(found)
}

// note is learn for who has the mutex.
func (p *Places) note(found []sql.Place) {
	if p.byID == nil {
		p.byID = map[int]known{0: {mine: job.Selector{}.Takes(p.Labels)}}
	}
	for _, f := range found {
		if _, there := p.byID[f.ID]; there {
			continue
		}
		k := known{text: f.Selector}
		var err error
		if k.selector, err = job.ParsePlace(f.Selector); err != nil {
			p.Log.Error("place is not understood: this node takes no task of it", "place", f.ID, "selector", f.Selector, "error", err)
			k.broken = true
		}
		k.mine = k.takenBy(p.Labels)
		p.byID[f.ID] = k
	}
}

func (k known) takenBy(labels map[string]string) bool { return !k.broken && k.selector.Takes(labels) }

// takes tells whether tasks of a place are for this session; false for one that is not known.
func (p *Places) takes(place int) (mine, isKnown bool) {
	if p == nil {
		return true, true
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	k, ok := p.byID[place]
	return k.mine, ok
}

// text returns the selector of a place.
func (p *Places) text(place int) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.byID[place].text
}

// ready tells whether anything is known at all.
func (p *Places) ready() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.byID != nil
}

// look returns the slices to claim from: up to ahead those that prefer this session, up to others those of everybody.
func (p *Places) look(s Session, ahead, others job.Micros) []sql.Slice {
	if p == nil {
		return append(preferred(s, ahead), everything(others))
	}
	g := p.grouped()
	if g.plain {
		return append(preferred(s, ahead), everything(others))
	}
	_, _, buckets := s.Share()
	var out []sql.Slice
	for _, sh := range g.shares {
		if sh.index < 0 {
			continue
		}
		for _, slice := range preferredOf(sh.index, sh.of, buckets, ahead) {
			slice.Places = sh.places
			out = append(out, slice)
		}
	}
	all := everything(others)
	all.Except = g.others
	return append(out, all)
}

// grouped shares the places out among the members.
func (p *Places) grouped() *grouping {
	labels, index, seen := p.Members()
	p.mu.Lock()
	defer p.mu.Unlock()
	if g := p.group; g != nil && g.seen == seen && g.places == len(p.byID) {
		return g
	}
	g := &grouping{seen: seen, places: len(p.byID)}
	byTakers := map[string]int{}
	ids := make([]int, 0, len(p.byID))
	for id := range p.byID {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	for _, id := range ids {
		k := p.byID[id]
		if !k.mine {
			g.others = append(g.others, id)
			continue
		}
		takers, sh := make([]byte, len(labels)), share{index: -1}
		for i, l := range labels {
			if !k.takenBy(l) {
				continue
			}
			if i == index {
				sh.index = sh.of
			}
			takers[i] = 1
			sh.of++
		}
		n, there := byTakers[string(takers)]
		if !there {
			n = len(g.shares)
			byTakers[string(takers)] = n
			g.shares = append(g.shares, sh)
		}
		g.shares[n].places = append(g.shares[n].places, id)
	}
	g.plain = g.places == 1 && len(g.shares) == 1 && g.shares[0].of == len(labels)
	p.group = g
	return g
}

// only leaves out tasks that are not for this session. One whose place is not known yet is looked up.
func (p *Places) only(ctx context.Context, found []sql.Candidate) ([]sql.Candidate, error) {
	if p == nil {
		return found, nil
	}
	places := make([]int, len(found))
	for i, c := range found {
		places[i] = c.Place
	}
	err := p.lookUp(places, func(unknown []int) ([]sql.Place, error) { return p.DB.PlacesOf(ctx, unknown) })
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(found, func(c sql.Candidate) bool { mine, _ := p.takes(c.Place); return !mine }), nil
}

// learnOf looks the places of jobs up that are not known yet: others may have changed the jobs a moment ago.
func (p *Places) learnOf(tx *sql.Tx, jobs map[int64]*sql.JobRow) error {
	if p == nil {
		return nil
	}
	var places []int
	for _, j := range jobs {
		places = append(places, j.Place)
	}
	return p.lookUp(places, tx.PlacesOf)
}

// lookUp reads those of the places that are not known, of which rows were seen that are committed.
func (p *Places) lookUp(places []int, read func([]int) ([]sql.Place, error)) error {
	var unknown []int
	for _, id := range places {
		if _, known := p.takes(id); !known && !slices.Contains(unknown, id) {
			unknown = append(unknown, id)
		}
	}
	if len(unknown) == 0 {
		return nil
	}
	found, err := read(unknown)
	if err != nil {
		return err
	}
	for _, id := range unknown {
		if id != 0 && !slices.ContainsFunc(found, func(f sql.Place) bool { return f.ID == id }) {
			found = append(found, sql.Place{ID: id, Selector: fmt.Sprintf("(place %d, which is gone)", id)}) // a hand did that
		}
	}
	p.learn(found)
	return nil
}

// unmatched lists, of all known places, those that no session takes which takes work, and of some others those that
// one does. Nothing is unmatched before the first look at the sessions.
func (p *Places) unmatched(awaited []int) (unmatched, matched []int) {
	labels, _, seen := p.Members()
	if seen == 0 {
		return nil, nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for id, k := range p.byID {
		switch {
		case !slices.ContainsFunc(labels, k.takenBy):
			unmatched = append(unmatched, id)
		case slices.Contains(awaited, id):
			matched = append(matched, id)
		}
	}
	slices.Sort(unmatched)
	return unmatched, matched
}
