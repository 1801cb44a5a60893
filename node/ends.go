package node

import (
	"context"
	"slices"
	"time"

	"go-crontab/job"
	"go-crontab/result"
	"go-crontab/schedule"
	"go-crontab/session"
	"go-crontab/sql/trip"
)

// track adds a recorder to the node's recorders. The node counts the recorder's ends. If it stops
// before they can be written, it spools them.
func (n *Node) track(r *result.Recorder) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.recorders = append(n.recorders, r)
}

// untrack drops a recorder if it has written everything.
func (n *Node) untrack(r *result.Recorder) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if r.Waiting() == 0 {
		n.recorders = slices.DeleteFunc(n.recorders, func(other *result.Recorder) bool { return other == r })
	}
}

func (n *Node) tracked() []*result.Recorder {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.recorders)
}

// unwritten returns the number of ends that are not known to be written.
func (n *Node) unwritten() (all int) {
	for _, r := range n.tracked() {
		all += r.Waiting()
	}
	return all
}

// unwrittenFor returns the age of the oldest unwritten end.
func (n *Node) unwrittenFor() (longest time.Duration) {
	for _, r := range n.tracked() {
		longest = max(longest, r.Age())
	}
	return longest
}

// logEnd logs the end of a run that failed, timed out or was lost. Nobody waits for a scheduled
// run, so only this line shows its failure in the log.
func (n *Node) logEnd(spec *job.Spec, r *job.Run, again job.Micros) {
	switch r.Outcome {
	case job.Failed, job.TimedOut:
	case job.Lost:
		n.outage.Lost(1)
	default:
		return
	}

	line := []any{
		"job", spec.FullName(), "outcome", r.Outcome.String(), "reason", r.Reason.Text,
		"duration", r.Ended.Sub(r.Started).Round(time.Millisecond),
		"run", r.Launch, "due", r.Due, "attempt", r.Attempt, "node", n.cfg.Name,
	}
	if again != 0 {
		line = append(line, "next_attempt", again)
	}
	n.log.Warn("run failed", line...)
}

// endedSession is the current session, except for its number: that is the number of an ended
// session. It writes the spooled ends of the ended session.
type endedSession struct {
	*session.Session
	number trip.Owner
}

func (e endedSession) Number() trip.Owner { return e.number }

// noSet stands for the executing set of an ended session, which is gone.
type noSet struct{}

func (noSet) Written([]job.Launch) {}

// replay writes the ends that an earlier process has spooled. When all are written, it removes the
// file. If we die earlier, the next process reads the file again, and finds that the runs have
// ended.
func (n *Node) replay(ctx context.Context, s *session.Session) {
	if n.spool == nil {
		return
	}

	spooled, torn, err := n.spool.Load()
	if err != nil {
		n.log.Error("cannot read the spooled results of the previous process", "error", err)
		return
	}

	if torn {
		n.log.Warn("skipped unreadable lines of the spool, from a crash or another version")
	}
	if len(spooled) == 0 {
		return
	}

	n.log.Info("writing the spooled results of the previous process", "runs", len(spooled))
	recorders := map[trip.Owner]*result.Recorder{}
	for _, e := range spooled {
		r := recorders[e.Owner]
		if r == nil {
			r = result.New(result.Config{
				Exclusion:   n.exclusion,
				Session:     endedSession{s, e.Owner},
				Executing:   noSet{},
				Definitions: schedule.Reader{Definitions: schedule.NewDefinitions(), DB: n.db},
				Log:         n.log,
			})
			recorders[e.Owner] = r
			n.track(r)
		}
		r.Put(e.End, true)
	}

	left := 0
	for _, r := range recorders {
		r.Flush(ctx)
		left += r.Waiting()
		n.untrack(r)
	}

	if left > 0 {
		return // the node stops, and spools the remaining ends again
	}
	if err := n.spool.Clear(); err != nil {
		n.log.Warn("cannot remove the spool after writing its results to MySQL", "error", err)
	}
}

// closeParts waits until the large outputs of ended runs are written. By then the ends themselves
// are written, or cannot be written now.
func (n *Node) closeParts(hard context.Context) {
	ctx, cancel := context.WithTimeout(hard, trip.PartGrace)
	defer cancel()
	n.parts.Close(ctx)
}

// save spools the ends that could not be written.
func (n *Node) save() {
	waiting := n.unwritten()
	if waiting == 0 {
		return
	}

	if n.spool == nil {
		n.log.Error("results of runs are lost: MySQL does not respond, and this node has no --state-dir",
			"runs", waiting)
		return
	}

	saved, err := n.spool.Save(n.tracked()...)
	if err != nil {
		n.log.Error("results of runs are lost: they cannot be spooled", "runs", waiting, "error", err)
		return
	}

	n.log.Warn("spooled results of runs, the next start of this node writes them", "runs", saved)
}
