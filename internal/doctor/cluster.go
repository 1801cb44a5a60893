package doctor

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"go-crontab/internal/alert"
	"go-crontab/job"
	"go-crontab/sql/read"
	"go-crontab/sql/trip"
)

func nodes(x *exam) error {
	live := x.live()
	var names []string
	slots := 0
	for _, s := range live {
		names = append(names, s.Node)
		slots += s.Slots
	}

	if len(live) == 0 {
		x.found(Error, Finding{
			Code:     NoNode,
			Seen:     "no node has sent a heartbeat for " + x.expiry.String(),
			Why:      "No due times are claimed and no runs start.",
			Fix:      "Start a node. If it does not join, its log says why.",
			Commands: []string{"go-crontab serve"},
		})
		return nil
	}

	slices.Sort(names)
	if names = slices.Compact(names); len(names) == 1 {
		x.found(Notice, Finding{
			Code:  OnlyNode,
			Seen:  names[0] + " is the only node",
			Why:   "If it or its machine fails, no runs start until it is back.",
			Fix:   "Start another node on another machine, with the same GOCRONTAB_DSN.",
			Nodes: names,
		})
	}

	for _, s := range x.sessions {
		if age := x.now.Sub(s.BeatAt); age > x.expiry*4/10 {
			x.found(Warning, Finding{
				Code:  NodeSilent,
				Seen:  fmt.Sprintf("%s has sent no heartbeat for %s", s.Node, age.Round(100*time.Millisecond)),
				Why:   "It starts no runs. When its session expires, other nodes take over its runs.",
				Fix:   "Check its machine, its log and its connection to MySQL.",
				Nodes: []string{s.Node},
			})
		}
	}

	return nil
}

// duplicateNames reports live nodes that share a name.
func duplicateNames(x *exam) error {
	shared := read.SharedNames(x.sessions, x.now, x.expiry)
	for _, name := range slices.Sorted(maps.Keys(shared)) {
		x.found(Warning, Finding{
			Seen: fmt.Sprintf("%d live nodes are named %s: %s",
				len(shared[name]), name, strings.Join(shared[name], "; ")),
			Why: "A cordon or a selector by name applies to all of them, the history does not show which one " +
				"ran a job, and no alert fires when one of them is gone.",
			Fix:   "Stop all but one, and give the others their own names (--node, GOCRONTAB_NODE).",
			Nodes: []string{name},
		})
	}
	return nil
}

func cordons(x *exam) error {
	cordoned := map[string]bool{}
	takes := false
	for _, s := range x.live() {
		if s.Cordoned != 0 {
			cordoned[s.Node] = true
			if x.now.Sub(s.Cordoned) > 24*time.Hour {
				x.found(Notice, Finding{
					Code:     NodeCordoned,
					Seen:     fmt.Sprintf("%s has been cordoned for %s", s.Node, days(x.now.Sub(s.Cordoned))),
					Why:      "It starts no runs; the other nodes do its work.",
					Fix:      "Uncordon it if it may work again.",
					Commands: []string{"go-crontab node uncordon " + quote(s.Node)},
					Nodes:    []string{s.Node},
				})
			}
		} else if !s.Draining {
			takes = true
		}
	}

	if len(cordoned) > 0 && !takes {
		var names []string
		for n := range cordoned {
			names = append(names, n)
		}
		slices.Sort(names)
		x.found(Warning, Finding{
			Code:     AllCordoned,
			Seen:     "all nodes are cordoned or draining",
			Why:      "No runs start.",
			Fix:      "Uncordon a node, or start another one.",
			Commands: []string{"go-crontab node uncordon " + quote(names[0])},
			Nodes:    names,
		})
	}

	return nil
}

func pauses(x *exam) error {
	stops, err := trip.Stops(x.db.Reader(x.ctx))
	for _, p := range stops {
		if p.Until != 0 || x.now.Sub(p.Since) <= 24*time.Hour {
			continue
		}
		what, command := "the cluster has", "go-crontab cluster resume"
		switch p.Kind {
		case trip.StopCluster:
		case trip.StopApp:
			what, command = "app "+p.Name+" has", "go-crontab app resume "+quote(p.Name)
		default:
			continue
		}
		x.found(Notice, Finding{
			Seen: fmt.Sprintf("%s been paused by %s for %s, with no end set",
				what, p.Who, days(x.now.Sub(p.Since))),
			Why:      "Its jobs have no due times. The pause may have been forgotten.",
			Fix:      "Resume it if it is no longer needed.",
			Commands: []string{command},
		})
	}

	return err
}

func versions(x *exam) error {
	byVersion := map[string][]string{}
	for _, s := range x.live() {
		byVersion[s.Version] = append(byVersion[s.Version], s.Node)
	}

	if len(byVersion) < 2 {
		return nil
	}

	var all, names []string
	for v, n := range byVersion {
		all, names = append(all, v), append(names, n...)
	}

	slices.Sort(all)
	slices.Sort(names)
	x.found(Notice, Finding{
		Seen:  "nodes run different versions: " + list(all, 5),
		Why:   "This is normal during an upgrade. Otherwise, some nodes may lack features that others have.",
		Fix:   "Upgrade all nodes to the same version.",
		Nodes: names,
	})

	return nil
}

func zoneRules(x *exam) error {
	byRules, froms := map[string][]string{}, map[string]string{}
	for _, s := range x.live() {
		if s.Zones != "" { // nodes of older versions do not report their time zone data
			byRules[s.Zones], froms[s.Zones] = append(byRules[s.Zones], s.Node), s.ZonesFrom
		}
	}

	if len(byRules) < 2 {
		return nil
	}

	var all, names []string
	for rules, nodes := range byRules {
		slices.Sort(nodes)
		all, names = append(all, fmt.Sprintf("%s (%s)", list(nodes, 5), froms[rules])), append(names, nodes...)
	}

	slices.Sort(all)
	slices.Sort(names)
	x.found(Warning, Finding{
		Seen: "nodes use different time zone data: " + strings.Join(all, " and "),
		Why: "If the rules of a zone differ, nodes compute different due times, and the node that claims next " +
			"decides. Due times that only other nodes would compute are lost without a record.",
		Fix: "Install the same data on all machines, and restart the nodes that had other data: they read it at " +
			"their start. When all nodes agree, the due times of all jobs are recomputed.",
		Commands: []string{"apt-get install --only-upgrade tzdata"},
		Nodes:    names,
	})

	return nil
}

func clocks(x *exam) error {
	for _, s := range x.live() {
		skew := (time.Duration(s.Offset) * time.Microsecond).Abs()
		severity := Notice
		switch {
		case skew < 2*time.Second:
			continue
		case skew > time.Minute:
			severity = Warning
		}
		x.found(severity, Finding{
			Code: NodeClock,
			Seen: fmt.Sprintf("the clock of %s differs from MySQL's by %s", s.Node, skew.Round(10*time.Millisecond)),
			Why: "Schedules follow MySQL's clock, so runs start on time. But the node's log, its commands, " +
				"certificates and sign-ins use its own clock.",
			Fix:      "Synchronize the machine's clock with NTP.",
			Commands: []string{"timedatectl set-ntp true"},
			Nodes:    []string{s.Node},
		})
	}

	// Compare the clock of this machine with MySQL's clock, by which due times are started.
	ours := job.MicrosOf(x.began)
	if skew := x.now.Sub(ours).Abs(); skew > 5*time.Second {
		x.found(Warning, Finding{
			Code: MySQLClock,
			Seen: fmt.Sprintf("MySQL's clock differs by %s from the clock of this machine, where the check ran",
				skew.Round(10*time.Millisecond)),
			Why: "All due times follow MySQL's clock. One of the two clocks is wrong.",
			Fix: "Synchronize both clocks with NTP. When MySQL's clock is corrected, " +
				"skipped due times end missed, with a record, and none is repeated.",
			Commands: []string{"timedatectl status"},
		})
	}

	return nil
}

func stuck(x *exam) error {
	const late = time.Minute
	before := x.now.Add(-late)
	orphans, err := x.db.OrphanRuns(x.ctx, x.now.Add(-x.expiry-20*time.Second))
	if err != nil {
		return err
	}

	live := len(x.live()) > 0
	if len(orphans) > 0 {
		f := Finding{
			Code: RunsOrphaned,
			Seen: count(len(orphans), 20,
				"run belongs to a session that has ended", "runs belong to sessions that have ended"),
			Why:  "They do not start or end until a node takes them over. Jobs that must not overlap wait for them.",
			Fix:  "Start a node: it takes them over within " + (x.expiry + 10*time.Second).String() + ".",
			Jobs: jobsOfRuns(orphans),
		}
		severity := Error
		if live { // the reaper needs some time to end these runs
			severity, f.Fix = Notice, "Nodes take them over within "+(x.expiry+10*time.Second).String()+
				". If this finding stays, the logs of the nodes say why."
		}
		x.found(severity, f)
	}

	idle, prepared, err := x.db.UnbegunRuns(x.ctx, before)
	if err != nil {
		return err
	}

	if len(idle) > 0 {
		busy, slots := 0, 0
		for _, s := range x.live() {
			busy, slots = busy+s.Executing, slots+s.Slots
		}
		f := Finding{
			Code: RunsUnclaimed,
			Seen: count(len(idle), 20,
				"run has been due for over a minute and no node has claimed it",
				"runs have been due for over a minute and no node has claimed them"),
			Why:  "They start late or end missed.",
			Jobs: jobsOfRuns(idle),
		}
		switch {
		case !live:
			f.Fix = "Start a node."
		case busy >= slots*9/10:
			f.Fix = fmt.Sprintf("%d runs execute on %d slots (an HTTP request takes a sixteenth of a slot). "+
				"If all slots are in use, add nodes, or give nodes more slots (serve --slots).", busy, slots)
		default:
			f.Fix = "The logs of the nodes say why they do not claim; explain gives the reason for one due time."
			f.Commands = []string{"go-crontab job explain " + quote(idle[0].App+"/"+idle[0].Name) +
				" --at " + idle[0].Due.Time().UTC().Format(time.RFC3339)}
		}
		x.found(Warning, f)
	}

	if len(prepared) > 0 {
		x.found(Warning, Finding{
			Code: RunsUnstarted,
			Seen: count(len(prepared), 20,
				"run has been due for over a minute and is claimed, but has not started",
				"runs have been due for over a minute and are claimed, but have not started"),
			Why:      "Their node holds them but cannot start them: its slots are full, or its starts fail.",
			Fix:      "Look at the log of " + prepared[0].Text + ". If you drain it, it releases them.",
			Commands: []string{"go-crontab node drain " + quote(prepared[0].Text)},
			Jobs:     jobsOfRuns(prepared),
			Nodes:    []string{prepared[0].Text},
		})
	}

	waits, err := x.db.StalledWaits(x.ctx, before)
	if len(waits) > 0 {
		x.found(Warning, Finding{
			Code: RunsStalled,
			Seen: count(len(waits), 20,
				"run waits for another run of its job, but none executes",
				"runs wait for other runs of their jobs, but none executes"),
			Why:      "The end of a run wakes the next one. No run will wake these.",
			Fix:      "Run the job once by hand; the end of that run wakes the next one.",
			Commands: []string{"go-crontab job run " + quote(waits[0].App+"/"+waits[0].Name)},
			Jobs:     jobsOfRuns(waits),
		})
	}

	return err
}

func longRuns(x *exam) error {
	runs, err := x.db.LongRuns(x.ctx, x.now.Add(-24*time.Hour))
	if len(runs) > 0 {
		r := &runs[0]
		x.found(Notice, Finding{
			Seen: count(len(runs), 20, "run has executed", "runs have executed") + " for over 24 hours; " +
				r.App + "/" + r.Name + " since " + job.Micros(r.N).Time().UTC().Format(time.RFC3339),
			Why: "Unless they are meant to last, they hang, " +
				"and later due times are skipped if the job must not overlap.",
			Fix:      "Look at their output, kill the hanging ones, and give their jobs a timeout.",
			Commands: []string{"go-crontab run ls --state running"},
			Jobs:     jobsOfRuns(runs),
		})
	}

	return err
}

func jobsOfRuns(list []read.StuckRun) []Job {
	var out []Job
	for _, t := range list {
		if j := (Job{t.ID, t.App, t.Name}); !slices.Contains(out, j) && len(out) < 10 {
			out = append(out, j)
		}
	}
	return out
}

func days(d time.Duration) string {
	if n := int(d / (24 * time.Hour)); n > 1 {
		return fmt.Sprintf("%d days", n)
	}
	return fmt.Sprintf("%d hours", int(d/time.Hour))
}

// troubled reports the troubles of one kind. The finding f holds the text that they share.
func (x *exam) troubled(event job.AlertEvent, severity Severity, f Finding) error {
	found, err := x.db.Troubles(x.ctx, x.now)
	for _, t := range found {
		if t.Event != event {
			continue
		}
		if f.Seen, f.Nodes = t.Text, nil; t.Node != "" {
			f.Nodes = []string{t.Node}
		}
		x.found(severity, f)
	}
	return err
}

func folders(x *exam) error {
	return x.troubled(job.AlertFolderRefused, Error, Finding{
		Why:      "Changes of the folder have no effect until all its files can be applied.",
		Fix:      "Correct the files. The node reads them again by itself.",
		Commands: []string{"go-crontab cluster"},
	})
}

func expiring(x *exam) error {
	return x.troubled(job.AlertExpiring, Warning, Finding{
		Why: "Whoever uses a token is refused once it has expired, and clients refuse an expired certificate.",
		Fix: "Create a new token, give it to its user and revoke the old one, or renew the certificate: " +
			"nodes read its files again by themselves.",
		Commands: []string{"go-crontab token ls"},
	})
}

func provider(x *exam) error {
	return x.troubled(job.AlertOIDCUnreachable, Warning, Finding{
		Why:      "People cannot sign in with the identity provider. Tokens work.",
		Fix:      "Check --oidc-issuer, and the network between the node and the provider.",
		Commands: []string{"curl -sS ISSUER/.well-known/openid-configuration"},
	})
}

func backup(x *exam) error {
	return x.troubled(job.AlertBackupOld, Warning, Finding{
		Why:      "A restore would lose everything since the last backup.",
		Fix:      "Look why the backup did not run, or did not tell of itself; see docs/backup.md.",
		Commands: []string{"go-crontab cluster backup --next-within 26h"},
	})
}

// alerting reports a cluster in which no rule sends alerts to anybody.
func alerting(x *exam) error {
	on, err := alert.Sends(x.db.Reader(x.ctx))
	if err == nil && !on {
		x.found(Notice, Finding{
			Seen: "no alert rule is enabled that sends to an enabled channel",
			Why:  "Nobody is told when a job fails or a node is gone.",
			Fix:  "Create a channel and a rule; see docs/alerts.md.",
			Commands: []string{
				"go-crontab alert channel set chat --type slack --url URL",
				"go-crontab alert rule set ops --on failed,lost,never_ran,node_gone --channel chat",
			},
		})
	}
	return err
}

func channels(x *exam) error {
	list, err := alert.Failing(x.db.Reader(x.ctx))
	for _, f := range list {
		x.found(Warning, Finding{
			Seen: fmt.Sprintf("the channel %s is failing: %s failed since %s: %s",
				f.Name, count(int(f.Tries), math.MaxInt, "try", "tries"), f.Since.Time().UTC().Format(time.RFC3339), f.Said),
			Why:      "No alert reaches anyone through this channel.",
			Fix:      "Correct the channel or its receiver, and test it. A delivered message ends this finding.",
			Commands: []string{"go-crontab alert test " + quote(f.Name)},
		})
	}

	return err
}
