package ledger

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"go-crontab/job"
)

// Job is the expectation about a job.
type Job struct {
	ID       int64
	App      string // "" is the default app
	Name     string
	Dues     []job.Micros // by its schedule, in order; each must have exactly one final run
	Allow    bool         // its runs may overlap
	Rerun    bool         // a lost attempt may be followed by another
	Attempts int          // limit of attempts, failed ones included; 0: one
	Stopped  bool         // its runs may be killed, be replaced, or time out
}

// Every returns the due times from first, included, to until, excluded.
func Every(interval time.Duration, first, until job.Micros) (dues []job.Micros) {
	for due := first; due < until; due = due.Add(interval) {
		dues = append(dues, due)
	}
	return dues
}

// Expected describes correct behaviour.
type Expected struct {
	Jobs []Job

	// Early returns the time by which an attempt may start before its due time, at an instant. It
	// covers the error of the nodes' readings of MySQL's clock at that instant, which is half a
	// round trip. nil: not at all.
	Early func(at job.Micros) time.Duration

	// Unspawned is the number of runs of a session that may be lost without having been started:
	// runs of its last start whose children were not yet spawned.
	Unspawned int

	// Sessions gives the known ends of sessions. A session that is not listed may lose runs that
	// ended just before its own end.
	Sessions map[uuid.UUID]Life

	// Behind is the time by which the end of a lost run may precede the last end that its session
	// wrote. The write of that end may have waited for a locked row.
	Behind time.Duration

	// Missed is the interval after the due time of a missed run in which no start may have
	// happened; zero: any start may.
	Missed [2]time.Duration
}

// Life is the end of a session.
type Life int8

// The possible lives.
const (
	Struck Life = iota // killed, cut off, or unknown
	Left               // ended in order: it waited for its commands, killed the rest, and wrote all outcomes
	Lives              // still running: it wrote the outcome of every command that has ended
)

// Fault is a kind of violation.
type Fault string

// The faults. A run that should not exist, or that disagrees with the ledger, is contradictory.
const (
	Lost          Fault = "lost"        // a due time without a final run
	Doubled       Fault = "doubled"     // a due time with two final runs, or started more often than its job allows
	Overlapping   Fault = "overlapping" // two attempts of a job, or of a due time, lived at once
	Early         Fault = "early"       // started before it was due
	Contradictory Fault = "contradictory"

	// Unfinished: started, and no run has its end; or said to have succeeded without having ended.
	Unfinished Fault = "unfinished"

	// NotTried: given up although nothing was started, some node could start it, or another attempt
	// was due.
	NotTried Fault = "not tried"
)

// Faults lists all faults.
var Faults = []Fault{Lost, Doubled, Overlapping, Early, Unfinished, NotTried, Contradictory}

// Violation is a deviation from the expected.
type Violation struct {
	Fault Fault
	Job   string
	Due   job.Micros
	Text  string
}

func (v Violation) String() string {
	return fmt.Sprintf("%s: %s due %s: %s", v.Fault, v.Job, v.Due, v.Text)
}

// Figures returns the number of violations of every kind, as text.
func Figures(vs []Violation) string {
	counts := map[Fault]int{}
	for _, v := range vs {
		counts[v.Fault]++
	}
	words := make([]string, len(Faults))
	for i, f := range Faults {
		words[i] = fmt.Sprintf("%d %s", counts[f], f)
	}
	return strings.Join(words, ", ")
}

// Check compares the ledger with the history and with the expected due times, and returns all
// violations. Runs after the last expected due time are only compared with their executions, so
// that the jobs may continue to run.
func Check(expected Expected, entries []Entry, history []job.Run) []Violation {
	c := checker{expected: expected, executed: map[string]*execution{}, runs: map[string]*job.Run{},
		unspawned: map[uuid.UUID]int{}, written: map[uuid.UUID]job.Micros{}}
	c.read(entries)

	byJob := map[int64][]*job.Run{}
	for i := range history {
		r := &history[i]
		byJob[r.JobID] = append(byJob[r.JobID], r)
		if !r.Launch.IsZero() {
			c.runs[r.Launch.String()] = r
		}
	}

	c.witnesses()

	for i := range expected.Jobs {
		j := &expected.Jobs[i]
		executed := c.of(j)
		c.accountFor(j, byJob[j.ID])
		c.starts(j, executed, byJob[j.ID])
		c.tried(j, byJob[j.ID])
		c.overlaps(j, executed)
	}

	slices.SortStableFunc(c.found, func(a, b Violation) int {
		return cmp.Or(cmp.Compare(a.Job, b.Job), cmp.Compare(a.Due, b.Due), cmp.Compare(a.Fault, b.Fault))
	})

	return c.found
}

// execution is the ledger's record of a launch.
type execution struct {
	app, job, launch string
	due              job.Micros
	start, last      job.Micros // last: its last line
	ended            bool
	exit             int
}

type checker struct {
	expected Expected
	executed map[string]*execution
	runs     map[string]*job.Run
	found    []Violation

	unspawned map[uuid.UUID]int        // runs of a session that were lost without having been started
	written   map[uuid.UUID]job.Micros // the latest end whose exit code a session wrote
	started   []job.Micros             // in order
}

func (c *checker) add(f Fault, name string, due job.Micros, format string, args ...any) {
	c.found = append(c.found, Violation{f, name, due, fmt.Sprintf(format, args...)})
}

// read groups the entries by launch.
func (c *checker) read(entries []Entry) {
	for _, e := range entries {
		x := c.executed[e.Launch]
		if x == nil {
			x = &execution{app: e.App, job: e.Job, launch: e.Launch, due: e.Due}
			c.executed[e.Launch] = x
		}

		if x.job != e.Job || x.app != e.App || x.due != e.Due {
			c.add(Contradictory, e.Job, e.Due, "launch %s is also of %s due %s", e.Launch, x.job, x.due)
		}

		x.last = max(x.last, e.At)

		switch e.Kind {
		case Start:
			if x.start != 0 {
				c.add(Doubled, e.Job, e.Due, "launch %s was started twice", e.Launch)
				continue
			}
			x.start = e.At
		case End:
			x.ended, x.exit = true, e.Exit
		}
	}
}

// witnesses collects proof that a session could write outcomes, and that some node could start
// runs.
func (c *checker) witnesses() {
	for _, x := range c.executed {
		if r := c.runs[x.launch]; r != nil && x.ended && r.ExitCode != nil {
			c.written[r.Session] = max(c.written[r.Session], x.last)
		}
		c.started = append(c.started, x.start)
	}
	slices.Sort(c.started)
}

// of returns the executions of a job, the earliest first.
func (c *checker) of(j *Job) []*execution {
	var mine []*execution
	for _, x := range c.executed {
		if x.job != j.Name || x.app != cmp.Or(j.App, job.DefaultApp) {
			continue
		}
		if x.start == 0 {
			c.add(Contradictory, j.Name, x.due, "launch %s has lines but no start", x.launch)
			x.start = x.last
		}
		mine = append(mine, x)
	}

	slices.SortFunc(mine, func(a, b *execution) int {
		return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.launch, b.launch))
	})

	return mine
}

// key is a due time of the schedule, or of a manual request.
type key struct {
	due     job.Micros
	request int64
}

// accountFor checks that each due time has exactly one final run, and that no other runs exist.
func (c *checker) accountFor(j *Job, runs []*job.Run) {
	want := map[job.Micros]bool{}
	for _, due := range j.Dues {
		want[due] = true
	}

	finals := map[key][]*job.Run{}
	attempts := map[key]map[int]*job.Run{}
	for _, r := range runs {
		dues := []job.Micros{r.Due}
		if r.Count > 1 {
			from, _ := slices.BinarySearch(j.Dues, r.Due)
			to, _ := slices.BinarySearch(j.Dues, r.Until+1)
			dues = j.Dues[from:to]
			if len(j.Dues) > 0 && r.Until <= j.Dues[len(j.Dues)-1] && int64(len(dues)) != r.Count {
				c.add(Contradictory, j.Name, r.Due, "a run until %s counts %d due times, want %d", r.Until, r.Count,
					len(dues))
			}
		}

		for _, due := range dues {
			k := key{due, r.Request}
			if r.Kind == job.FromSchedule && !want[due] && len(j.Dues) > 0 && due <= j.Dues[len(j.Dues)-1] {
				c.add(Contradictory, j.Name, due, "a run of what is no due time: %s", describe(r))
			}
			if attempts[k] == nil {
				attempts[k] = map[int]*job.Run{}
			}
			if other := attempts[k][r.Attempt]; other != nil {
				c.add(Doubled, j.Name, due, "two runs of attempt %d: %s, %s", r.Attempt, describe(other), describe(r))
			}

			attempts[k][r.Attempt] = r
			if r.Final {
				finals[k] = append(finals[k], r)
			}
		}
	}

	for _, due := range j.Dues {
		if k := (key{due: due}); len(finals[k]) == 0 {
			c.add(Lost, j.Name, due, "no final run, %d attempts", len(attempts[k]))
		}
	}

	for k, rs := range finals {
		for _, r := range rs[1:] {
			c.add(Doubled, j.Name, k.due, "two final runs: %s, %s", describe(rs[0]), describe(r))
		}
	}
}

// starts compares executions with runs.
func (c *checker) starts(j *Job, executed []*execution, runs []*job.Run) {
	started := map[key][]*execution{}
	for _, x := range executed {
		r := c.runs[x.launch]
		k := key{due: x.due}
		switch {
		case r == nil:
			c.add(Unfinished, j.Name, x.due, "launch %s was started and has no run", x.launch)
		case r.JobID != j.ID || r.Due != x.due:
			c.add(Contradictory, j.Name, x.due, "the run of launch %s is of job %d due %s", x.launch, r.JobID, r.Due)
		default:
			k.request = r.Request
			c.outcome(j, x, r)
		}

		if x.start < x.due && (c.expected.Early == nil || x.start < x.due.Add(-c.expected.Early(x.start))) {
			c.add(Early, j.Name, x.due, "launch %s was started %s before that", x.launch, x.due.Sub(x.start))
		}

		started[k] = append(started[k], x)
	}

	again := map[key]int{} // legitimate further starts
	for _, r := range runs {
		if r.Outcome == job.Succeeded && c.executed[r.Launch.String()] == nil {
			c.add(Contradictory, j.Name, r.Due, "nothing was executed: %s", describe(r))
		}
		if !r.Final && j.again(r) {
			again[key{r.Due, r.Request}]++
		}
		c.stopped(j, r)
	}

	for k, xs := range started {
		if len(xs) > 1+again[k] {
			var launches []string
			for _, x := range xs {
				launches = append(launches, x.launch)
			}
			c.add(Doubled, j.Name, k.due, "started %d times, want %d at most: %s", len(xs), 1+again[k],
				strings.Join(launches, ", "))
		}
	}
}

// stopped checks runs that did not end by themselves: there must have been a reason.
func (c *checker) stopped(j *Job, r *job.Run) {
	switch life := c.expected.Sessions[r.Session]; {
	case r.Outcome == job.Lost && life == Lives:
		c.add(Unfinished, j.Name, r.Due, "its session lives: %s", describe(r))
	case r.Outcome == job.Lost && life == Left:
		c.add(Unfinished, j.Name, r.Due, "its session ended in order: %s", describe(r))
	case !j.Stopped && (r.Outcome == job.TimedOut || life == Lives && (r.Outcome == job.Killed || r.Signal != "")):
		c.add(Contradictory, j.Name, r.Due, "nobody stopped it: %s", describe(r))
	}
}

// tried checks final runs that gave a due time up. Lost means that the run was started.
func (c *checker) tried(j *Job, runs []*job.Run) {
	for _, r := range runs {
		if !r.Final {
			continue
		}
		if j.again(r) {
			c.add(NotTried, j.Name, r.Due, "attempt %d was the last, and is not to be: %s", r.Attempt, describe(r))
		}

		if r.Outcome == job.Lost && c.executed[r.Launch.String()] == nil {
			c.unspawned[r.Session]++
			if n := c.unspawned[r.Session]; n > c.expected.Unspawned {
				c.add(NotTried, j.Name, r.Due,
					"it was never started, and is number %d of its session of which that is so, want %d at most: %s",
					n, c.expected.Unspawned, describe(r))
			}
		}

		if j.Allow && r.Kind == job.FromSchedule && (r.Outcome == job.Skipped || r.Outcome == job.Superseded) {
			c.add(NotTried, j.Name, r.Due, "its runs may overlap: %s", describe(r))
		}
		if r.Kind == job.FromSchedule && r.Outcome == job.Missed {
			c.missed(j, r)
		}
	}
}

// missed checks that no node could have started a missed run.
func (c *checker) missed(j *Job, r *job.Run) {
	for _, due := range j.Dues {
		if due < r.Due || due > r.Until {
			continue
		}
		from, to := due.Add(c.expected.Missed[0]), due.Add(c.expected.Missed[1])
		if i, _ := slices.BinarySearch(c.started, from); i < len(c.started) && c.started[i] < to {
			c.add(NotTried, j.Name, due, "something was started %s later: %s", c.started[i].Sub(due), describe(r))
		}
	}
}

// again reports whether another attempt may follow a run.
func (j *Job) again(r *job.Run) bool {
	switch r.Outcome {
	case job.Lost:
		return j.Rerun && r.Attempt < max(j.Attempts, job.LostAttempts)
	case job.Failed, job.TimedOut:
		return r.Attempt < j.Attempts
	}
	return false
}

func (c *checker) outcome(j *Job, x *execution, r *job.Run) {
	switch {
	case r.Outcome == job.Skipped && r.Reason.Code != job.ReasonNothingToDo,
		r.Outcome == job.Missed, r.Outcome == job.Superseded:
		c.add(Contradictory, j.Name, x.due, "it was executed: %s", describe(r))
	case r.Outcome == job.Succeeded && !x.ended:
		c.add(Unfinished, j.Name, x.due, "it never ended: %s", describe(r))
	case r.Outcome == job.Succeeded && x.exit != 0:
		c.add(Contradictory, j.Name, x.due, "it ended with code %d: %s", x.exit, describe(r))
	case !x.ended:
	case r.ExitCode != nil && *r.ExitCode != x.exit:
		c.add(Contradictory, j.Name, x.due, "it ended with code %d, not %d: %s", x.exit, *r.ExitCode, describe(r))
	case r.Outcome == job.Failed && r.Signal == "" && x.exit == 0:
		c.add(Contradictory, j.Name, x.due, "it ended well: %s", describe(r))
	case r.ExitCode == nil && (r.Outcome == job.Succeeded || r.Outcome == job.Failed && r.Signal == ""):
		c.add(Contradictory, j.Name, x.due, "it ended with code %d, which is not written: %s", x.exit, describe(r))
	case r.ExitCode == nil && !j.Stopped && x.last < c.written[r.Session].Add(-c.expected.Behind):
		c.add(Unfinished, j.Name, x.due, "it ended with code %d, and its session wrote what ended %s later: %s",
			x.exit, c.written[r.Session].Sub(x.last), describe(r))
	}
}

// overlaps finds two attempts that lived at once, according to their lines. A killed attempt lived
// at least until its last line.
func (c *checker) overlaps(j *Job, executed []*execution) {
	latest := map[job.Micros]*execution{} // the longest-lived attempt of a due time; 0 is the key for all due times
	for _, x := range executed {
		k := x.due
		if !j.Allow {
			k = 0
		}
		if o := latest[k]; o != nil && x.start < o.last {
			c.add(Overlapping, j.Name, x.due, "launch %s lived for %s together with %s, which was due %s",
				x.launch, min(x.last, o.last).Sub(x.start), o.launch, o.due)
		}

		if o := latest[k]; o == nil || o.last < x.last {
			latest[k] = x
		}
	}
}

func describe(r *job.Run) string {
	text := r.Outcome.String()
	if !r.Launch.IsZero() {
		text += ", launch " + r.Launch.String()
	}
	if r.Reason.Text != "" {
		text += " (" + r.Reason.Text + ")"
	}
	return text
}

// Outcomes counts the final runs by outcome. A run that covers several due times counts once for
// each.
func Outcomes(history []job.Run) map[job.Outcome]int64 {
	counts := map[job.Outcome]int64{}
	for _, r := range history {
		if r.Final {
			counts[r.Outcome] += max(r.Count, 1)
		}
	}
	return counts
}
