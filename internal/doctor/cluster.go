package doctor

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

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
			Seen:     "no node has been heard of for " + x.expiry.String(),
			Why:      "Nothing is planned and nothing starts.",
			Fix:      "Start a node; its log says why it does not join, if it does not.",
			Commands: []string{"go-crontab serve"},
		})
		return nil
	}

	slices.Sort(names)
	if names = slices.Compact(names); len(names) == 1 {
		x.found(Notice, Finding{
			Code:  OnlyNode,
			Seen:  names[0] + " is the only node",
			Why:   "When it or its machine is gone, nothing starts until it is back.",
			Fix:   "Start another node on another machine, with the same GOCRONTAB_DSN.",
			Nodes: names,
		})
	}

	for _, s := range x.sessions {
		if age := x.now.Sub(s.BeatAt); age > x.expiry*4/10 {
			x.found(Warning, Finding{
				Code:  NodeSilent,
				Seen:  fmt.Sprintf("%s has not been heard of for %s", s.Node, age.Round(100*time.Millisecond)),
				Why:   "It starts nothing, and others take over what it had once its session has expired.",
				Fix:   "Look at its machine, its log, and its way to MySQL.",
				Nodes: []string{s.Node},
			})
		}
	}

	return nil
}

// duplicateNames reports live nodes that share a name. A node may take the name of a session that
// has missed three beats. So a session that has been silent for longer is left out: its node was
// killed and restarted.
func duplicateNames(x *exam) error {
	const beats = 3
	where := map[string][]string{}
	for _, s := range x.live() {
		if s.Node != "" && x.now.Sub(s.BeatAt) < beats*x.expiry/10 {
			where[s.Node] = append(where[s.Node], fmt.Sprintf("%s, pid %d", cmp.Or(s.Address, "no address"), s.PID))
		}
	}

	for _, name := range slices.Sorted(maps.Keys(where)) {
		if len(where[name]) < 2 {
			continue
		}
		x.found(Warning, Finding{
			Seen: fmt.Sprintf("%d live nodes are named %s: %s",
				len(where[name]), name, strings.Join(where[name], "; ")),
			Why: "A cordon and a selector by name reach all of them, the history does not say which one ran a job," +
				" and no alert tells that one of them is gone.",
			Fix:   "Stop all but one, and start the others with names of their own (--node, GOCRONTAB_NODE).",
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
					Why:      "It starts nothing, and the others have its work.",
					Fix:      "If it may work again, uncordon it.",
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
			Why:      "Nothing starts.",
			Fix:      "Uncordon one, or start another.",
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
			Seen:     fmt.Sprintf("%s been paused by %s for %s, without an end", what, p.Who, days(x.now.Sub(p.Since))),
			Why:      "Its jobs have no due times. A pause is easily forgotten.",
			Fix:      "Resume it if it was.",
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
		Seen:  "nodes of different versions: " + list(all, 5),
		Why:   "That is how an upgrade goes. If none is under way, what one version can, the other may not.",
		Fix:   "Bring all nodes to the same version.",
		Nodes: names,
	})

	return nil
}

func zoneRules(x *exam) error {
	byRules, froms := map[string][]string{}, map[string]string{}
	for _, s := range x.live() {
		if s.Zones != "" { // nodes of older versions do not report it
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
		Seen: "nodes compute with different time zone data: " + strings.Join(all, " and "),
		Why: "Where the rules of a zone have changed they compute different due times, " +
			"and whichever plans a job next decides. Due times that only the others see are lost without a record.",
		Fix: "Install the same data on all machines, and restart the nodes that had other data: " +
			"each reads it once. When all have the same, jobs are planned anew by it.",
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
			Seen: fmt.Sprintf("the clock of %s is %s off from MySQL's", s.Node, skew.Round(10*time.Millisecond)),
			Why: "Schedules go by MySQL's clock alone, so nothing starts at a wrong time. But its log, " +
				"what its commands read with date, and certificates and sign-ins go by its own.",
			Fix:      "Have the machine's clock kept by NTP.",
			Commands: []string{"timedatectl set-ntp true"},
			Nodes:    []string{s.Node},
		})
	}

	// Compare MySQL's clock, by which all due times go, with the clock of this machine.
	ours := job.MicrosOf(x.began)
	if skew := x.now.Sub(ours).Abs(); skew > 5*time.Second {
		x.found(Warning, Finding{
			Code: MySQLClock,
			Seen: fmt.Sprintf("MySQL's clock is %s off from that of the machine that looks",
				skew.Round(10*time.Millisecond)),
			Why: "All due times go by MySQL's clock. One of the two is wrong.",
			Fix: "Have both clocks kept by NTP. When MySQL's is put right, " +
				"due times that it skips are missed and told, and none is repeated.",
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
				"run belongs to a session that is gone", "runs belong to sessions that are gone"),
			Why:  "They neither start nor end until a node takes them over; jobs that must not overlap wait for them.",
			Fix:  "Start a node: it takes them over within " + (x.expiry + 10*time.Second).String() + ".",
			Jobs: jobsOfRuns(orphans),
		}
		severity := Error
		if live { // the reaper needs some time
			severity, f.Fix = Notice, "Nodes take them over within "+(x.expiry+10*time.Second).String()+
				". If they are still there then, the logs of the nodes say why."
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
				"run has been due for over a minute and nobody has claimed it",
				"runs have been due for over a minute and nobody has claimed them"),
			Why:  "Due times start late, or end missed.",
			Jobs: jobsOfRuns(idle),
		}
		switch {
		case !live:
			f.Fix = "Start a node."
		case busy >= slots*9/10:
			f.Fix = fmt.Sprintf("%d runs execute on %d slots, of which an HTTP request takes a sixteenth: "+
				"if they are taken, start further nodes, or give them more slots (serve --slots).", busy, slots)
		default:
			f.Fix = "The logs of the nodes say what keeps them from claiming; explain tells it of one due time."
			f.Commands = []string{"go-crontab job explain " + quote(idle[0].App+"/"+idle[0].Name) +
				" --at " + idle[0].Due.Time().UTC().Format(time.RFC3339)}
		}
		x.found(Warning, f)
	}

	if len(prepared) > 0 {
		x.found(Warning, Finding{
			Code: RunsUnstarted,
			Seen: count(len(prepared), 20,
				"run has been due for over a minute, is claimed, and is not started",
				"runs have been due for over a minute, are claimed, and are not started"),
			Why:      "Their node holds them and cannot start them: its slots are taken, or its starts fail.",
			Fix:      "Look at the log of " + prepared[0].Text + ". Drained, it gives them back.",
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
				"run waits for others of its job, and none executes",
				"runs wait for others of their jobs, and none executes"),
			Why:      "Whoever ends a run wakes the next one. Nobody wakes these.",
			Fix:      "Run the job once: the end of that run wakes the next one.",
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
				"and later due times of jobs that may not overlap are skipped.",
			Fix:      "Look at what they write, kill those that hang, and give their jobs a timeout.",
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

// failedLeast is the number of failed messages in a row after which a channel is reported.
const failedLeast = 3

func channels(x *exam) error {
	list, err := failingChannels(x.db.Reader(x.ctx), failedLeast)
	for _, f := range list {
		var c job.AlertChannel
		if json.Unmarshal([]byte(f.Spec), &c) == nil && c.Disabled {
			continue
		}
		x.found(Warning, Finding{
			Seen: fmt.Sprintf("the last %d messages to the channel %s failed, since %s: %s",
				f.Failed, f.Name, f.Since.Time().UTC().Format(time.RFC3339), f.Said),
			Why:      "Nobody is told by it when something goes wrong.",
			Fix:      "Correct the channel, or what it calls, and test it: once a message arrives this is over.",
			Commands: []string{"go-crontab alert test " + quote(f.Name)},
		})
	}

	return err
}
