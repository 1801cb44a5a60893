package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"go-crontab/internal/manifest"
	"go-crontab/job"
)

// maxApplyPart bounds the objects of a request, in bytes. The server accepts 16 MiB.
const maxApplyPart = 15 << 20

// parts splits a set into requests. With --prune it never splits: to know which jobs to delete, the
// server must see all jobs that stay.
func (f *applyFlags) parts(set *manifest.Set) ([]*manifest.Set, error) {
	if !f.prune {
		most := map[string]int{
			"groups": job.MaxApplyGroups, "calendars": job.MaxApplyCalendars,
			"retention": job.MaxApplyScopes, "pauses": job.MaxApplyScopes,
			"jobs": job.MaxApplyJobs,
		}
		return set.Parts(most, maxApplyPart)
	}

	if n := set.Jobs(); n > job.MaxApplyJobs {
		err := fmt.Errorf("--prune allows at most %d jobs in the files, and they have %d", job.MaxApplyJobs, n)
		return nil, withHint(&exitError{code: exitRefused, err: err},
			"apply them without --prune and delete obsolete jobs with %s job rm, or use files for smaller apps",
			program())
	}

	return []*manifest.Set{set}, nil
}

// applyParts applies sets one by one. If there are several, it first does a dry run of all.
func (r *remote) applyParts(ctx context.Context, parts []*manifest.Set, more map[string]any) error {
	dry := more["dry_run"] == true
	if len(parts) > 1 && !dry {
		for _, part := range parts {
			if _, _, err := r.apply(ctx, part, map[string]any{"dry_run": true}); err != nil {
				return err
			}
		}
	}

	a := &applyReport{
		remote: r, told: map[string]bool{}, counts: map[string]int{}, lists: map[string][]json.RawMessage{},
	}
	for i, part := range parts {
		done, raw, err := r.apply(ctx, part, more)
		kinds := appliedKinds(&done)
		if err == nil && len(parts) > 1 {
			err = a.take(kinds, raw)
		}
		if err != nil {
			if i > 0 && !dry {
				// Stopping is safe at any point. A part is applied completely or not at all, and a
				// part that is applied twice changes nothing the second time.
				r.notef("%d of %d parts are applied; run the same command again to apply the rest\n", i, len(parts))
			}
			return err
		}
		a.show(kinds)
		a.whole = raw
	}

	if len(parts) > 1 {
		whole := map[string]any{"dry_run": dry, "changed": a.changed}
		for field, list := range a.lists {
			whole[field] = list
		}
		var err error
		if a.whole, err = json.Marshal(whole); err != nil {
			return err
		}
	}

	return a.end(dry)
}

// applyReport reports each part of an apply when the part is complete.
type applyReport struct {
	*remote
	told    map[string]bool // objects already reported; a later part may contain them again
	counts  map[string]int  // by action
	changed int

	// whole is the response to print. lists are the merged lists of several responses.
	whole json.RawMessage
	lists map[string][]json.RawMessage
}

// take drops the objects that an earlier response has reported, and keeps the others unchanged.
func (a *applyReport) take(kinds []appliedKind, raw json.RawMessage) error {
	var sent map[string]json.RawMessage
	if err := json.Unmarshal(raw, &sent); err != nil {
		return err
	}

	for i := range kinds {
		k := &kinds[i]
		var list []json.RawMessage
		if text := sent[k.field]; text != nil {
			if err := json.Unmarshal(text, &list); err != nil {
				return err
			}
		}
		if a.lists[k.field] == nil {
			a.lists[k.field] = []json.RawMessage{}
		}

		fresh := k.list[:0]
		for i, o := range k.list {
			if key := k.kind + " " + o.Name; k.kind != "" {
				if a.told[key] {
					continue
				}
				a.told[key] = true
			}
			fresh = append(fresh, o)
			if a.format == "json" || a.format == "yaml" {
				a.lists[k.field] = append(a.lists[k.field], list[i])
			}
		}

		k.list = fresh
	}

	return nil
}

// show prints the changes, or the changes of a dry run.
func (a *applyReport) show(kinds []appliedKind) {
	for _, k := range kinds {
		for i := range k.list {
			o := &k.list[i]
			a.counts[string(o.Action)]++
			if o.Action != "unchanged" {
				a.changed++
			}

			switch {
			case a.format == "name" && o.Action != "unchanged":
				a.printf("%s\n", appliedName(o, k.kind))
			case a.format == "table":
				if o.Action != "unchanged" {
					a.showChange(o, k.kind)
				}
				for _, w := range o.Warnings {
					a.notef("warning: %s: %s\n", plain(appliedName(o, k.kind)), plain(w.Message))
				}
			}
		}
	}
}

// end prints a summary.
func (a *applyReport) end(dry bool) error {
	if a.format == "name" {
		return nil
	}
	return a.object(a.console, a.whole, "", func() error {
		var said []string
		for _, action := range []string{"created", "updated", "deleted", "unchanged"} {
			if n := a.counts[action]; n > 0 {
				said = append(said, fmt.Sprintf("%d %s", n, action))
			}
		}

		if said == nil {
			said = []string{"nothing to do"}
		}

		summary := strings.Join(said, ", ")
		if dry {
			summary = "dry run: " + summary
		}

		a.notef("%s\n", summary)
		if dry && a.changed > 0 {
			a.notef("nothing was changed; to apply it, leave out --dry-run\n")
		}
		return nil
	})
}
