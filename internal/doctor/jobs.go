package doctor

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"go-crontab/job"
	"go-crontab/sql"
	"go-crontab/sql/read"
)

func broken(x *exam) error {
	list, err := x.db.BrokenJobs(x.ctx, 20)
	if len(list) > 0 {
		x.found(Warning, Finding{
			Seen: count(len(list), 20, "job is", "jobs are") + " in error; " +
				list[0].App + "/" + list[0].Name + ": " + list[0].Text,
			Why:      "No due times can be computed from their stored definitions. Other jobs are not affected.",
			Fix:      "Correct their definitions, or restore an earlier version.",
			Commands: []string{"go-crontab job rollback " + quote(list[0].App+"/"+list[0].Name) + " VERSION"},
			Jobs:     jobsOf(list),
		})
	}
	return err
}

func unplaced(x *exam) error {
	live := x.live()
	if len(live) == 0 {
		return nil
	}

	var jobs []read.NamedJob
	all, err := x.db.PlacedJobs(x.ctx, x.most, func(j read.PlacedJob) bool {
		spec := job.Spec{Selector: j.Selector, Handler: j.Handler}
		wanted, err := spec.Place()
		if err != nil || slices.ContainsFunc(live, func(s sql.SessionRow) bool { return wanted.Takes(s.AllLabels()) }) {
			return false
		}
		j.Text = wanted.String()
		jobs = append(jobs, j.NamedJob)
		return len(jobs) == 20
	})
	if err != nil {
		return err
	}

	if len(jobs) > 0 {
		x.found(Warning, Finding{
			Seen: count(len(jobs), 20, "job has", "jobs have") + " no matching node; " +
				jobs[0].App + "/" + jobs[0].Name + " requires " + jobs[0].Text,
			Why:      "Their due times wait for a matching node, and end missed.",
			Fix:      "Start a node with these labels or handlers, or change the selectors of the jobs.",
			Commands: []string{"go-crontab node ls", "go-crontab serve --label KEY=VALUE"},
			Jobs:     jobsOf(jobs),
		})
	}

	return x.looked(all)
}

func unbegun(x *exam) error {
	const enough = 100
	var never, fail []read.NamedJob
	all, err := x.db.Spells(x.ctx, x.most, func(s read.JobSpell) (bool, error) {
		switch {
		case s.Unbegun && len(never) < enough:
			begun, err := x.db.AnyBegun(x.ctx, s.ID) // a run that still executes counts, because it has begun
			if err != nil {
				return false, err
			}
			if !begun {
				never = append(never, s.NamedJob)
			}
		case !s.Unbegun && s.N >= 10 && len(fail) < enough:
			fail = append(fail, s.NamedJob)
		}
		return len(never) == enough && len(fail) == enough, nil
	})
	if err != nil {
		return err
	}

	if len(never) > 0 {
		x.found(Warning, Finding{
			Code: NeverRuns,
			Seen: fmt.Sprintf("%s; the last %d due times of %s/%s were skipped or missed",
				count(len(never), enough, "job never runs", "jobs never run"), never[0].N, never[0].App, never[0].Name),
			Why: "Each of its due times meets an earlier run, finds no node, or is too late. " +
				"A job that never runs easily goes unnoticed.",
			Fix:      "The history says why each due time did not run.",
			Commands: []string{"go-crontab job history " + quote(never[0].App+"/"+never[0].Name)},
			Jobs:     jobsOf(never),
		})
	}

	if len(fail) > 0 {
		x.found(Notice, Finding{
			Code: AlwaysFails,
			Seen: fmt.Sprintf("%s; the last %d runs of %s/%s did not succeed",
				count(len(fail), enough, "job always fails", "jobs always fail"),
				fail[0].N, fail[0].App, fail[0].Name),
			Why:      "The failures may have gone unnoticed.",
			Fix:      "Look at the output of the last run.",
			Commands: []string{"go-crontab job history " + quote(fail[0].App+"/"+fail[0].Name)},
			Jobs:     jobsOf(fail),
		})
	}

	return x.looked(all)
}

func farAhead(x *exam) error {
	list, err := x.db.JobsDueBehind(x.ctx, x.now.Add(400*24*time.Hour), 20)
	if len(list) > 0 {
		x.found(Notice, Finding{
			Seen: fmt.Sprintf("%s in over a year; %s/%s on %s",
				count(len(list), 20, "job is next due", "jobs are next due"), list[0].App, list[0].Name,
				job.Micros(list[0].N).Time().UTC().Format(time.DateOnly)),
			Why:      "This may be intended, or a mistake in a schedule or calendar.",
			Fix:      "Check the next due times.",
			Commands: []string{"go-crontab job next " + quote(list[0].App+"/"+list[0].Name)},
			Jobs:     jobsOf(list),
		})
	}
	return err
}

func pausedLong(x *exam) error {
	list, err := x.db.JobsPausedBefore(x.ctx, x.now.Add(-30*24*time.Hour), 20)
	if len(list) > 0 {
		x.found(Notice, Finding{
			Seen: fmt.Sprintf("%s for over 30 days, with no end set; %s/%s for %s",
				count(len(list), 20, "job has been paused", "jobs have been paused"), list[0].App, list[0].Name,
				days(x.now.Sub(job.Micros(list[0].N)))),
			Why:      "The pause may have been forgotten.",
			Fix:      "Resume or delete them.",
			Commands: []string{"go-crontab job resume " + quote(list[0].App+"/"+list[0].Name)},
			Jobs:     jobsOf(list),
		})
	}
	return err
}

func herds(x *exam) error {
	slots := 0
	for _, s := range x.live() {
		slots += s.Slots
	}

	found, err := x.db.Herds(x.ctx, x.now.Add(25*time.Hour), max(100, slots), 5)
	for _, h := range found {
		if len(h.Some) == 0 { // the jobs have been planned in the meantime
			continue
		}
		x.found(Notice, Finding{
			Seen: fmt.Sprintf("%d jobs are due at %s, within one second; all nodes together have %d slots",
				h.Jobs, h.At.Time().UTC().Format(time.RFC3339), slots),
			Why:      "Runs without a free slot start late, and the systems that jobs call get all requests at once.",
			Fix:      "Add a jitter to jobs that need not start on the minute: each job gets a fixed delay within it.",
			Commands: []string{"go-crontab job edit " + quote(h.Some[0].App+"/"+h.Some[0].Name) + " --jitter 5m"},
			Jobs:     jobsOf(h.Some),
		})
	}

	return err
}

func zones(x *exam) error {
	list, all, err := x.db.ZonesInUse(x.ctx, x.most)
	if err != nil {
		return err
	}

	for _, z := range list {
		if _, err := job.LoadZone(z.Text); err != nil {
			x.found(Error, Finding{
				Seen: fmt.Sprintf("the time zone %s (jobs: %d) cannot be loaded: %v", z.Text, z.N, err),
				Why:  "These jobs have no due times on this node, and other nodes may compute different ones.",
				Fix: "Repair or install the machine's time zone data. " +
					"Without any, the node uses the data in the program.",
				Commands: []string{"apt-get install --reinstall tzdata"},
				Jobs:     jobsOf([]read.NamedJob{z}),
			})
		}
	}

	return x.looked(all)
}

// quote quotes a word for a shell, if necessary.
func quote(word string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_.-/", r)
	}
	if word != "" && strings.IndexFunc(word, func(r rune) bool { return !plain(r) }) < 0 {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
