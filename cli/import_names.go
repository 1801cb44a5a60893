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

// keepNames gives lines the names that they have already: a line is named after its command, and after the lines above it
// that are named so too. When one of those is gone, the others would come under other names, beside the jobs that they are.
// It tells of the jobs that no line stands for any more.
func (r *remote) keepNames(ctx context.Context, app string, lines []imported, report *importReport) error {
	known := map[string][]string{} // names by when the job does what
	alike := map[string][]string{} // and by what it does
	all := map[string]string{}     // from which crontab a job came
	for _, label := range report.labels {
		if label.now == "" {
			continue
		}
		for _, given := range []string{label.now, label.before} {
			jobs, _, err := listQuietly[jobView](ctx, r, "/api/v1/jobs", url.Values{"app": {app}, "label": {"crontab=" + given}}, 0)
			switch {
			case err != nil && report.DryRun && errors.Is(err, connectionRefused): // that is told later
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
				if given == label.now { // what has no machine in its label may be another one's, unless a line does the same
					all[j.Name] = label.now
				}
			}
		}
	}
	if len(known) == 0 {
		return nil
	}
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
	for i := range lines {
		s := &lines[i].Job
		keep(i, known[lineOf(s.Labels["crontab"], s.Schedule, s.Timezone, s.User, s.Command, s.Stdin)])
	}
	for i := range lines { // its times may have been changed
		s := &lines[i].Job
		keep(i, alike[lineOf(s.Labels["crontab"], "", "", "", s.Command, s.Stdin)])
	}
	for i := range lines {
		if !kept[i] {
			lines[i].Job.Name = free(&lines[i].Entry, taken)
			taken[lines[i].Job.Name] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if !taken[name] {
			report.Notes = append(report.Notes, importedNote{File: all[name], Text: problem.ImportJobLeft.Of(
				app+"/"+name, program(), quote(app+"/"+name))})
		}
	}
	return nil
}

// lineOf is what makes a line the one that it is.
func lineOf(label, schedule, zone, user, command, stdin string) string {
	return fmt.Sprintf("%q", []string{label, schedule, orElse(zone, "UTC"), user, command, stdin})
}

// free is the name of a line, or one like it that no other line has.
func free(e *crontab.Entry, taken map[string]bool) string {
	name := e.Job.Name
	h := fnv.New32a()
	fmt.Fprint(h, e.Job.Schedule, e.Job.User, e.Job.Command, e.Job.Stdin)
	for i := 0; taken[name]; i++ {
		name = fmt.Sprintf("%s-%04x", e.Job.Name, (h.Sum32()+uint32(i))&0xffff)
	}
	return name
}
