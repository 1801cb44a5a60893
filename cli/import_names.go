package cli

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"net/url"
	"slices"

	"go-crontab/internal/crontab"
	"go-crontab/job/problem"
)

// keepNames reuses the names of an earlier import. A new name depends on the command and on the
// lines above. If one of those lines is removed, later lines would get other names, and their jobs
// would be created twice. keepNames also notes jobs whose line is gone.
func (r *remote) keepNames(ctx context.Context, app string, lines []imported, report *importReport) error {
	known := map[string][]string{} // names by schedule and command
	alike := map[string][]string{} // names by command alone
	all := map[string]string{}     // all imported names, with their crontab

	// Read the jobs of earlier imports.
	for _, label := range report.labels {
		if label.now == "" {
			continue
		}
		for _, given := range []string{label.now, label.before} {
			jobs, _, err := listQuietly[jobView](ctx, r, "/api/v1/jobs",
				url.Values{"app": {app}, "label": {"crontab=" + given}}, 0)
			switch {
			case err != nil && report.DryRun && errors.Is(err, connectionRefused): // reported later
				return nil
			case err != nil:
				return err
			}

			for i := range jobs {
				j := &jobs[i]
				does := lineOf(label.now, j.Schedule, j.Timezone, j.User, j.Command, j.Stdin)
				known[does] = append(known[does], j.Name)
				does = lineOf(label.now, "", "", "", j.Command, j.Stdin)
				alike[does] = append(alike[does], j.Name)
				// A job without a machine in its label may come from another machine. It counts as
				// ours only if a line matches it.
				if given == label.now {
					all[j.Name] = label.now
				}
			}
		}
	}

	if len(known) == 0 {
		return nil
	}

	// Each line takes the name of a job that matches it, unless an earlier line has taken the name.
	taken, kept := map[string]bool{}, make([]bool, len(lines))
	keep := func(i int, names []string) {
		s := &lines[i].Job
		names = slices.DeleteFunc(slices.Clone(names), func(n string) bool { return taken[n] })
		if len(names) == 0 || kept[i] {
			return
		}
		s.Name, kept[i] = names[max(0, slices.Index(names, s.Name))], true
		taken[s.Name] = true
	}

	// First, lines with the same schedule and command.
	for i := range lines {
		s := &lines[i].Job
		keep(i, known[lineOf(s.Labels["crontab"], s.Schedule, s.Timezone, s.User, s.Command, s.Stdin)])
	}

	// Then lines with the same command, since the schedule may have changed.
	for i := range lines {
		s := &lines[i].Job
		keep(i, alike[lineOf(s.Labels["crontab"], "", "", "", s.Command, s.Stdin)])
	}

	// Other lines get a free name.
	for i := range lines {
		if !kept[i] {
			lines[i].Job.Name = free(&lines[i].Entry, taken)
			taken[lines[i].Job.Name] = true
		}
	}

	// Note the jobs whose line is gone.
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if !taken[name] {
			report.Notes = append(report.Notes, importedNote{File: all[name], Text: problem.ImportJobLeft.Of(
				app+"/"+name, program(), quote(app+"/"+name))})
		}
	}

	return nil
}

// lineOf returns a key that identifies a line.
func lineOf(label, schedule, zone, user, command, stdin string) string {
	return fmt.Sprintf("%q", []string{label, schedule, orElse(zone, "UTC"), user, command, stdin})
}

// free returns the name of a line. If another line has that name, it returns a variant of it.
func free(e *crontab.Entry, taken map[string]bool) string {
	name := e.Job.Name
	h := fnv.New32a()
	fmt.Fprint(h, e.Job.Schedule, e.Job.User, e.Job.Command, e.Job.Stdin)
	for i := 0; taken[name]; i++ {
		name = fmt.Sprintf("%s-%04x", e.Job.Name, (h.Sum32()+uint32(i))&0xffff)
	}
	return name
}
