package doctor

import (
	"cmp"
	"slices"

	"go-crontab/job"
)

// Severity is the severity of a finding or a check.
type Severity string

// The severities.
const (
	Unknown Severity = "unknown" // the check could not look
	OK      Severity = "ok"
	Notice  Severity = "notice"  // worth knowing, but nothing is wrong
	Warning Severity = "warning" // will cause trouble, or already does so for some jobs
	Error   Severity = "error"   // the promise does not hold, or the cluster does not work
)

var order = []Severity{Unknown, OK, Notice, Warning, Error}

// Worse reports whether a is worse than b.
func (a Severity) Worse(b Severity) bool { return slices.Index(order, a) > slices.Index(order, b) }

// Area is the subject of a check.
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

// Finding is a problem that a check has found.
type Finding struct {
	Check    string
	Code     Code // "": the check can find only one thing
	Area     Area
	Severity Severity
	Seen     string   // the problem
	Why      string   // why it matters
	Fix      string   // how to fix it
	SQL      []string // statements that fix it, for a user with the rights to run them
	Commands []string
	Jobs     []Job
	Nodes    []string
}

// Job is a job that a finding concerns.
type Job struct {
	ID        int64
	App, Name string
}

// Checked is the result of a check.
type Checked struct {
	ID       string
	Area     Area
	About    string // the property that holds if the check finds nothing; it may then include the amount checked
	Severity Severity
	Skipped  string // why the check could not look
}

// Report is the result of an examination.
type Report struct {
	At       job.Micros // by MySQL's clock
	Server   string     // the server's version
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
