package cli

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"go-crontab/api/view"

	"github.com/spf13/cobra"
)

func clusterCommand(c *console) *cobra.Command {
	cmd := &cobra.Command{
		Use: "cluster", Short: "List the nodes and their load", Args: nothing, Example: "  go-crontab cluster",
	}
	cmd.AddCommand(
		pauseAll(c, "pause", "Pause all jobs", nothing,
			"  go-crontab cluster pause --reason \"database maintenance\" --until 2h"),
		resumeAll(c, "resume", "Resume a paused cluster", nothing,
			"  go-crontab cluster resume"))

	r := newRemote(c, cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		v, raw, err := get[view.Cluster](cmd.Context(), r, "/api/v1/cluster", nil)
		if err != nil {
			return err
		}

		pauses, _, err := get[view.Page[view.Pause]](cmd.Context(), r, "/api/v1/pauses", nil)
		if err != nil {
			return err
		}

		slices.SortFunc(v.Sessions, func(a, b view.Session) int { return strings.Compare(a.Node, b.Node) })
		var names []string
		for _, s := range v.Sessions {
			names = append(names, s.Node)
		}

		return r.object(c, raw, strings.Join(names, "\n"), func() error {
			if err := r.table(clusterTable(&v, c.now())); err != nil {
				return err
			}
			c.notef("%s, session expiry %s, as seen by %s\n", plain(v.Server), v.SessionExpiry, plain(v.Node))
			for i := range v.Folders {
				r.noteFolder(v.Folders[i], c.now())
			}
			return r.notePauses(pauses.Items)
		})
	}

	return cmd
}

func clusterTable(v *view.Cluster, now time.Time) *table {
	t := &table{columns: []column{
		{head: "NODE", shrink: true}, {head: "STATE"}, {head: "API"}, {head: "PID", right: true, spare: true},
		{head: "BEAT"}, {head: "JOINED", spare: true},
		{head: "RUNNING", right: true}, {head: "SLOTS", right: true, drop: true},
		{head: "PREPARED", right: true, drop: true}, {head: "CLOCK", right: true, drop: true},
		{head: "VERSION", shrink: true, drop: true}, {head: "SESSION", drop: true},
	}}

	expiry, _ := time.ParseDuration(v.SessionExpiry)
	for _, s := range v.Sessions {
		state, age := "ready", time.Duration(s.BeatAgeMS)*time.Millisecond
		switch {
		case expiry > 0 && age > expiry*4/10: // with such a lease, a node starts nothing
			state = "silent"
		case s.Draining:
			state = "draining"
		}
		t.add(text(s.Node), cell{state, statusColour(state)}, text(s.Address), text(fmt.Sprint(s.PID)),
			text(precise(age.Round(100*time.Millisecond))+" ago"), text(relative(&s.Started, now)),
			text(fmt.Sprint(s.Executing)), text(fmt.Sprint(s.Slots)), text(fmt.Sprint(s.Prepared)),
			text(offset(s.ClockOffsetMS)),
			text(s.Version), cell{s.ID, faint})
	}

	return t
}

// noteFolder prints the state of a followed folder, and its errors.
func (r *remote) noteFolder(f *view.Folder, now time.Time) {
	if f.Applied != nil {
		r.notef("folder %s: applied %s by %s\n", plain(f.Folder), relative(f.Applied, now), plain(f.Node))
	}
	for _, n := range f.Nodes {
		switch n.State {
		case "refused":
			r.notef("folder %s: %s refused it %s and applied nothing:\n", plain(f.Folder), plain(n.Node),
				relative(&n.Since, now))
			for line := range strings.Lines(n.Error) {
				r.notef("  %s\n", plain(strings.TrimSuffix(line, "\n")))
			}
		case "behind":
			r.notef("folder %s: the copy on %s is older than the applied one, since %s\n", plain(f.Folder),
				plain(n.Node), relative(&n.Since, now))
		}
	}
}

// offset formats the difference between MySQL's clock and the node's. It needs no action, because
// MySQL's clock counts.
func offset(ms float64) string {
	d := time.Duration(ms * float64(time.Millisecond))
	switch {
	case d >= time.Millisecond:
		return "+" + precise(d)
	case d <= -time.Millisecond:
		return "-" + precise(-d)
	}
	return "0ms"
}
