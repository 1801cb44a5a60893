package cli

import (
	"fmt"
	"net/http"
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
			"  go-crontab cluster resume"),
		clusterBackup(c))

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
			if b := v.Backup; b != nil {
				c.notef("last backup %s, the next one within %s of it\n", both(&b.At, c.now()), b.NextWithin)
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

// clusterBackup tells the cluster of a backup.
func clusterBackup(c *console) *cobra.Command {
	var within string
	cmd := &cobra.Command{
		Use: "backup --next-within TIME", Short: "Tell the cluster that its database was backed up", Args: nothing,
		Long: `Tell the cluster that its database has just been backed up. If this is not repeated within the given
time, doctor, a metric and the alert event backup_old say so. It makes no backup itself.`,
		Example: "  go-crontab cluster backup --next-within 26h",
	}

	r := newRemote(c, cmd)
	cmd.Flags().StringVar(&within, "next-within", "", "time in which the next backup is expected, such as 26h")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		d, err := durationFlag("next-within", within)
		if err != nil {
			return err
		}
		if d == 0 {
			return usageError("--next-within is missing: say when the next backup is expected, such as --next-within 26h")
		}

		v, raw, err := ask[view.Backup](cmd.Context(), r, http.MethodPut, "/api/v1/cluster/backup", nil,
			map[string]any{"next_within": d})
		if err != nil {
			return err
		}
		return r.object(c, raw, "backup", func() error {
			c.printf("the backup of %s is noted; the next one is expected within %s\n", both(&v.At, c.now()), v.NextWithin)
			return nil
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
		case expiry > 0 && age > expiry*4/10: // a node with a lease this old starts nothing
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

// offset formats the difference between MySQL's clock and the node's clock. Nobody has to correct
// the difference, because only MySQL's clock counts.
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
