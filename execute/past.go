package execute

import (
	"context"
	"errors"
	"sync"
	"time"

	"go-crontab/job"
)

// Past knows the last successes of jobs.
type Past interface {
	// LastSuccess finds, for each run, the latest earlier due time of its job with a succeeded
	// run; zero: there is no record of such a run. It calls found, from any goroutine, for each
	// run that it has an answer for. After an error, the other runs have no answer.
	LastSuccess(ctx context.Context, runs []job.Started, found func(i int, due job.Micros)) error
}

// past is what an attempt learns of the last success of its job.
type past struct {
	ask   func()        // begins to ask, at the first call
	known chan struct{} // closed when due is set
	due   job.Micros
	once  sync.Once // sets due: a repeated question may be answered twice
}

func (p *past) tell(due job.Micros) {
	p.once.Do(func() {
		p.due = due
		close(p.known)
	})
}

// lookBack asks for the last successes of the jobs of commands and handlers, all at once and
// before they are due. It leaves out requests: few name their last success, and each of these asks
// by itself.
func (x *Executing) lookBack(entries []*entry) {
	if x.Past == nil {
		return
	}

	var together []*entry
	for _, a := range entries {
		a.past = &past{known: make(chan struct{})}
		if a.Spec.HTTP == nil {
			a.past.ask = func() {}
			together = append(together, a)
			continue
		}
		a.past.ask = sync.OnceFunc(func() { go x.askPast([]*entry{a}) })
	}
	if len(together) > 0 {
		go x.askPast(together)
	}
}

// askPast asks, and asks again when MySQL does not answer, until the time to begin is over for all
// attempts.
func (x *Executing) askPast(entries []*entry) {
	until := entries[0].until
	for _, a := range entries {
		if a.until.After(until) {
			until = a.until
		}
	}
	ctx, cancel := context.WithDeadline(x.Ctx, until)
	defer cancel()

	for {
		runs := make([]job.Started, len(entries))
		for i, a := range entries {
			runs[i] = a.Started
		}
		if x.Past.LastSuccess(ctx, runs, func(i int, due job.Micros) { entries[i].past.tell(due) }) == nil {
			return
		}

		select {
		case <-ctx.Done():
			return
		case <-time.After(secretPause):
		}
		if entries = unanswered(entries); len(entries) == 0 {
			return
		}
	}
}

// unanswered returns the attempts that do not know their last success yet.
func unanswered(entries []*entry) (left []*entry) {
	for _, a := range entries {
		select {
		case <-a.past.known:
		default:
			left = append(left, a)
		}
	}
	return left
}

// learnPast sets LastSuccess, if the attempt needs it. It waits for the answer while the attempt
// may begin, because a wrong answer could make a command skip data. If ok is false, the attempt
// does not begin, and res is its result.
func (a *Attempt) learnPast(ctx context.Context) (res job.Result, ok bool) {
	if a.past == nil || a.HTTP != nil && !a.HTTP.NamesLastSuccess() {
		return job.Result{}, true
	}

	a.past.ask()
	switch err := a.await(ctx, a.past.known, a.BeginBy); {
	case errors.Is(err, errLate):
		return job.Result{Outcome: job.Missed, Reason: reason("", "its last success could not be read in time")}, false
	case err != nil:
		return killed(ctx), false
	}
	if a.past.due != 0 {
		a.LastSuccess = a.past.due.Time()
	}
	return job.Result{}, true
}

// lastSuccess returns LastSuccess in microseconds; zero: none.
func (a *Attempt) lastSuccess() job.Micros {
	if a.LastSuccess.IsZero() {
		return 0
	}
	return job.MicrosOf(a.LastSuccess)
}
