package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"go-crontab/internal/manifest"
	"go-crontab/job"
)

// maxApplyPart is how many bytes of objects a request has at most, of the 16 MiB that are taken.
const maxApplyPart = 15 << 20

// parts are the requests that a set takes. What is to be deleted is known by all that stays, so that is never cut.
func (f *applyFlags) parts(set *manifest.Set) ([]*manifest.Set, error) {
	if !f.prune {
		return set.Parts(map[string]int{"groups": job.MaxApplyGroups, "calendars": job.MaxApplyCalendars, "retention": job.MaxApplyScopes,
			"pauses": job.MaxApplyScopes, "jobs": job.MaxApplyJobs}, maxApplyPart)
	}
	if n := set.Jobs(); n > job.MaxApplyJobs {
		return nil, withHint(&exitError{code: exitRefused, err: fmt.Errorf("--prune takes at most %d jobs, and the files have %d", job.MaxApplyJobs, n)},
			"apply them without --prune, and delete what is gone with %s job rm; or keep files for apps or labels that have fewer", program())
	}
	return []*manifest.Set{set}, nil
}

// applyParts applies sets one after the other, several after a dry run of all.
func (r *remote) applyParts(ctx context.Context, parts []*manifest.Set, more map[string]any) error {
	dry := more["dry_run"] == true
	if len(parts) > 1 && !dry {
		for _, part := range parts {
			if _, _, err := r.apply(ctx, part, map[string]any{"dry_run": true}); err != nil {
				return err
			}
		}
	}
	a := &applyReport{remote: r, told: map[string]bool{}, counts: map[string]int{}, lists: map[string][]json.RawMessage{}}
	for i, part := range parts {
		done, raw, err := r.apply(ctx, part, more)
		if err == nil && len(parts) > 1 {
			err = a.take(&done, raw)
		}
		if err != nil {
			if i > 0 && !dry {
				// Wherever it ends: a part is done or not, and of one that is done the next time finds nothing to do.
				r.notef("%d of %d parts are applied; the same again goes on with the others\n", i, len(parts))
			}
			return err
		}
		a.show(&done)
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

// applyReport tells of the parts of an apply as they are done.
type applyReport struct {
	*remote
	told    map[string]bool // what may stand in several parts
	counts  map[string]int  // by actions
	changed int

	// What the server said: of one part, and of the parts so far by their lists.
	whole json.RawMessage
	lists map[string][]json.RawMessage
}

// take leaves out of an answer what an earlier one has told already, and keeps the rest as it was sent.
func (a *applyReport) take(done *appliedView, raw json.RawMessage) error {
	var sent map[string]json.RawMessage
	if err := json.Unmarshal(raw, &sent); err != nil {
		return err
	}
	for _, k := range done.kinds() {
		var list []json.RawMessage
		if text := sent[k.field]; text != nil {
			if err := json.Unmarshal(text, &list); err != nil {
				return err
			}
		}
		if a.lists[k.field] == nil {
			a.lists[k.field] = []json.RawMessage{}
		}
		fresh := (*k.list)[:0]
		for i, o := range *k.list {
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
		*k.list = fresh
	}
	return nil
}

// show prints what was changed, or would be.
func (a *applyReport) show(done *appliedView) {
	for _, k := range done.kinds() {
		for i := range *k.list {
			o := &(*k.list)[i]
			a.counts[o.Action]++
			if o.Action != "unchanged" {
				a.changed++
			}
			switch {
			case a.format == "name" && o.Action != "unchanged":
				a.printf("%s\n", o.fullName(k.kind))
			case a.format == "table":
				if o.Action != "unchanged" {
					a.showChange(o, k.kind)
				}
				for _, w := range o.Warnings {
					a.notef("warning: %s: %s\n", plain(o.fullName(k.kind)), plain(w.Message))
				}
			}
		}
	}
}

// end prints what it comes to.
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
			a.notef("nothing was changed; to do it, leave --dry-run out\n")
		}
		return nil
	})
}
