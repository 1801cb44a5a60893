package doctor

import (
	"cmp"
	"slices"

	"go-crontab/job"
)

// Severity says how bad something is.
type Severity string

// The severities.
const (
	Unknown Severity = "unknown" // of a check that could not look
	OK      Severity = "ok"
	Notice  Severity = "notice"  // worth knowing; nothing is wrong
	Warning Severity = "warning" // something will go wrong, or goes wrong for some jobs
	Error   Severity = "error"   // the promise does not hold, or the cluster does not work
)

var order = []Severity{Unknown, OK, Notice, Warning, Error}

// Worse tells whether a is worse than b.
func (a Severity) Worse(b Severity) bool { return slices.Index(order, a) > slices.Index(order, b) }

// Area is what a check is about.
type Area string

// The areas.
const (
	MySQL   Area = "mysql"
	Schema  Area = "schema"
	Cluster Area = "cluster"
	Host    Area = "machine"
	Jobs    Area = "jobs"
	History Area = "history"
)

// Finding is one thing that is not as it should be.
type Finding struct {
	Check    string
	Code     Code // "" if its check finds one thing only
	Area     Area
	Severity Severity
	Seen     string
	Why      string
	Fix      string
	SQL      []string // statements that mend it, to be run by who may
	Commands []string
	Jobs     []Job
	Nodes    []string
}

// Job is one that a finding is about.
type Job struct {
	ID        int64
	App, Name string
}

// Checked is what came of a check.
type Checked struct {
	ID       string
	Area     Area
	About    string // what is so when nothing is found; if nothing was, it may say how much was looked at
	Severity Severity
	Skipped  string // why it could not look
}

// Report is all of it.
type Report struct {
	At       job.Micros // MySQL's clock
	Server   string     // what the server calls itself
	Worst    Severity
	Findings []Finding // the worst first
	Checks   []Checked
}

func (r *Report) sort() {
	r.Worst = OK
	for _, f := range r.Findings {
		if f.Severity.Worse(r.Worst) {
			r.Worst = f.Severity
		}
	}
	slices.SortStableFunc(r.Findings, func(a, b Finding) int {
		return cmp.Compare(slices.Index(order, b.Severity), slices.Index(order, a.Severity))
	})
}
