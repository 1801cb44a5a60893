package doctor

import (
	"errors"
	"fmt"
	"time"

	"go-crontab/job"
	"go-crontab/sql/read"
	"go-crontab/sql/trip"

	"github.com/google/uuid"
)

// Sizes above which the history is reported.
const (
	manyRows  = 5_000_000
	muchSpace = 20 << 30
)

func historySize(x *exam) error {
	rows, bytes := int64(0), int64(0)
	for _, name := range []string{"run", "output", "notable"} {
		if t := x.tables[name]; t != nil {
			bytes += t.Bytes
			if name == "run" {
				rows = t.Rows
			}
		}
	}

	if rows < manyRows && bytes < muchSpace {
		return nil
	}

	rules, err := trip.Retentions(x.db.Reader(x.ctx))
	if err != nil {
		return err
	}

	rule := rules[""]
	severity, fix := Notice, "If you do not need that much, let the cluster's rule keep half. "+
		"Apps and jobs with their own rules are not affected."
	if !rule.Bounded() {
		severity, fix = Warning, "The cluster's rule sets no limit: give it an age."
	}

	x.found(severity, Finding{
		Seen: fmt.Sprintf("the history has about %.1f million records and takes %.1f GiB",
			float64(rows)/1e6, float64(bytes)/(1<<30)),
		Why:      "A large history makes backups, restores and upgrades slow.",
		Fix:      fix,
		Commands: []string{setRule("", tighter(rule))},
	})

	return nil
}

// presetKeep is the retention of a new cluster.
var presetKeep = job.Keep{Age: job.Duration(2160 * time.Hour), Failures: job.Duration(8760 * time.Hour)}

// tighter returns a rule that keeps about half as much as r.
func tighter(r job.Retention) job.Retention {
	switch {
	case r.Age > 0:
		r.Age = max(r.Age/2, job.Duration(job.LeastKept))
		if r.Age > job.Duration(time.Hour) {
			r.Age = job.Duration(time.Duration(r.Age).Truncate(time.Hour))
		}
	case r.Runs > 0:
		r.Runs = max(1, r.Runs/2)
	case r.Bytes > 0:
		r.Bytes = max(1, r.Bytes/2)
	default:
		r.Keep = r.Over(presetKeep)
	}

	return r
}

// setRule returns the command that sets the rule of an app, or of the cluster (""), to r.
func setRule(app string, r job.Retention) string {
	command := "go-crontab retention set"
	if app != "" {
		command += " --app " + quote(app)
	}

	if r.Age > 0 {
		command += " --age " + r.Age.String()
	}

	if r.Runs > 0 {
		command += fmt.Sprintf(" --runs %d", r.Runs)
	}

	if r.Bytes > 0 {
		command += " --bytes " + r.Bytes.String()
	}

	if r.Failures > 0 {
		command += " --failures " + r.Failures.String()
	}

	if r.Archive {
		command += " --archive"
	}

	return command
}

func retention(x *exam) error {
	rules, err := trip.Retentions(x.db.Reader(x.ctx))
	var unreadable *trip.UnreadableRule
	if errors.As(err, &unreadable) {
		f := Finding{
			Code: RuleUnreadable,
			Seen: unreadable.Error(),
			Why:  "No records are removed while a rule cannot be read.",
			Fix:  "Set this rule again. The audit shows its earlier values; a shorter age removes records for good.",
			Commands: []string{
				"go-crontab audit --kind retention",
				setRule(unreadable.App, job.Retention{Keep: presetKeep}),
			},
		}
		if unreadable.App == "" {
			f.Fix += " Add --archive if records must be archived first."
		} else {
			f.Commands[0] += " --app " + quote(unreadable.App)
		}
		x.found(Warning, f)
		return nil
	}
	if err != nil {
		return err
	}

	c, err := read.Retaining(x.db.Reader(x.ctx))
	if err != nil {
		return err
	}

	if c.Failures > 0 {
		x.found(Warning, Finding{
			Code: ArchiveFails,
			Seen: fmt.Sprintf("the archive command has failed %d times in a row, the last time at %s: %s",
				c.Failures, c.ErrorAt.Time().UTC().Format(time.RFC3339), c.Error),
			Why:   "Records are removed only after the command has archived them, so the history grows.",
			Fix:   "Repair the command or its target. The nodes try again by themselves.",
			Nodes: x.nodeOf(c.Session),
		})
	}

	bounded := false
	for _, r := range rules {
		bounded = bounded || r.Bounded()
	}

	alive := time.Duration(0) // age of the oldest live session
	for _, s := range x.live() {
		alive = max(alive, x.now.Sub(s.Started))
	}

	if bounded && c.Failures == 0 && alive > time.Hour &&
		x.now.Sub(c.Ended) > 24*time.Hour && x.now.Sub(c.Until) > time.Hour {
		f := Finding{
			Code: NobodyRemoves,
			Seen: "no node has looked for expired records for over an hour",
			Why:  "Expired records are not removed, and the history grows.",
			Fix:  "The logs of the nodes say why; look for: cannot remove old records",
		}
		if rules[""].Archive {
			f.Fix = "The cluster's rule requires archiving: at least one node needs the archive command."
			f.Commands = []string{"go-crontab serve --archive-command COMMAND"}
		}
		x.found(Warning, f)
	}

	return nil
}

// nodeOf returns the node of a session that still exists.
func (x *exam) nodeOf(id uuid.UUID) []string {
	for _, s := range x.sessions {
		if s.ID == id {
			return []string{s.Node}
		}
	}
	return nil
}
