package doctor

import (
	"fmt"
	"time"

	"github.com/google/uuid"
)

// Sizes from which one should know what is kept.
const (
	manyRows  = 5_000_000
	muchSpace = 20 << 30
)

func historySize(x *exam) error {
	rows, bytes := int64(0), int64(0)
	for _, name := range []string{"history", "output", "notable"} {
		if t := x.tables[name]; t != nil {
			bytes += t.Bytes
			if name == "history" {
				rows = t.Rows
			}
		}
	}
	if rows < manyRows && bytes < muchSpace {
		return nil
	}
	rules, err := x.db.Retentions(x.ctx)
	if err != nil {
		return err
	}
	severity, fix := Notice, "If that is more than anybody reads, bound it further."
	if !rules[""].Bounded() {
		severity, fix = Warning, "The cluster's rule bounds nothing: give it an age."
	}
	x.found(severity, Finding{
		Seen: fmt.Sprintf("the history has some %.1f million records and takes %.1f GiB", float64(rows)/1e6, float64(bytes)/(1<<30)),
		Why:  "Records that nobody reads make backups, restores and upgrades slow.",
		Fix:  fix, Commands: []string{"go-crontab retention set --age 2160h --failures 8760h"},
	})
	return nil
}

func retention(x *exam) error {
	rules, err := x.db.Retentions(x.ctx)
	if err != nil {
		x.found(Warning, Finding{
			Seen: err.Error(), Why: "Nothing is removed by a rule that nobody can read: no records go at all.", Fix: "Set the rule anew.",
			Commands: []string{"go-crontab retention set --age 2160h --failures 8760h"},
		})
		return nil
	}
	c, err := x.db.Retaining(x.ctx)
	if err != nil {
		return err
	}
	if c.Failures > 0 {
		x.found(Warning, Finding{
			Seen: fmt.Sprintf("the archive command has failed %d times in a row, the last time at %s: %s", c.Failures, c.ErrorAt.Time().UTC().Format(time.RFC3339), c.Error),
			Why:  "Records go only after the command has taken them: they stay, and the history grows.",
			Fix:  "Mend the command, or what it writes to. It is tried again by itself.", Nodes: x.nodeOf(c.Session),
		})
	}
	bounded := false
	for _, r := range rules {
		bounded = bounded || r.Bounded()
	}
	alive := time.Duration(0) // for how long some node has lived
	for _, s := range x.live() {
		alive = max(alive, x.now.Sub(s.Started))
	}
	if bounded && c.Failures == 0 && alive > time.Hour && x.now.Sub(c.Ended) > 24*time.Hour && x.now.Sub(c.Until) > time.Hour {
		f := Finding{
			Seen: "no node has looked for records to remove for over an hour",
			Why:  "Records that are kept no longer stay, and the history grows.",
			Fix:  "The logs of the nodes say why, in lines with the word retention.",
		}
		if rules[""].Archive {
			f.Fix = "The cluster's rule wants records archived first: at least one node needs the command."
			f.Commands = []string{"go-crontab serve --archive-command COMMAND"}
		}
		x.found(Warning, f)
	}
	return nil
}

// nodeOf names the node of a session that lives.
func (x *exam) nodeOf(id uuid.UUID) []string {
	for _, s := range x.sessions {
		if s.ID == id {
			return []string{s.Node}
		}
	}
	return nil
}
