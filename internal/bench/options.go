package bench

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Options selects the measurements. Zero fields get the scenario's defaults.
type Options struct {
	DSN       string // of the server; "": start a private one
	Schema    string // an empty schema to use; "": make one, and drop it
	Scenarios []string
	Rate      int           // fires per second
	For       time.Duration // measured time, in whole seconds
	Jobs      int           // number of jobs of a burst or a table
	Nodes     int           // number of node processes
	RoundTrip time.Duration // added between the nodes and the server
	Binlog    bool          // the private server writes a binary log, flushed at each commit
	Repeat    int           // runs per scenario; the result is the run with the median rate
	Version   string        // of this program, for the report

	Say func(format string, args ...any) // reports progress; nil: no reports

	forTests bool // skip work that only makes the results steadier
}

// The upper limits of options.
const (
	maxRate  = 1_000_000
	maxJobs  = 100_000_000
	maxNodes = 64
)

// Check returns the errors of all options. The errors name the flags.
func (o *Options) Check() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }

	for _, name := range o.Scenarios {
		if _, ok := find(name); !ok {
			bad("scenario %q: want one of %s", name, strings.Join(Names(), ", "))
		}
	}

	if o.Rate < 0 || o.Rate > maxRate {
		bad("--rate %d: want 1 to %d", o.Rate, maxRate)
	}
	if o.Jobs < 0 || o.Jobs > maxJobs {
		bad("--jobs %d: want 1 to %d", o.Jobs, maxJobs)
	}
	if o.Nodes < 0 || o.Nodes > maxNodes {
		bad("--nodes %d: want 1 to %d", o.Nodes, maxNodes)
	}

	if o.For < 0 || o.For%time.Second != 0 || o.For > time.Hour {
		bad("--for %s: want whole seconds, at most 1h", o.For)
	}
	if o.RoundTrip < 0 || o.RoundTrip > time.Second {
		bad("--round-trip %s: want at most 1s", o.RoundTrip)
	}
	if o.Repeat < 0 || o.Repeat > 100 {
		bad("--repeat %d: want 1 to 100", o.Repeat)
	}

	if o.Binlog && o.DSN != "" {
		bad("--binlog is of the private server; one that --dsn names has a binary log or has none")
	}
	if o.Schema != "" && o.DSN == "" {
		bad("--schema is of a server that --dsn names")
	}
	return errors.Join(errs...)
}

// Names lists the scenarios.
func Names() []string {
	var names []string
	for _, s := range Scenarios() {
		names = append(names, s.Name)
	}
	return names
}

func find(name string) (Scenario, bool) {
	all := Scenarios()
	i := slices.IndexFunc(all, func(s Scenario) bool { return s.Name == name })
	if i < 0 {
		return Scenario{}, false
	}
	return all[i], true
}
