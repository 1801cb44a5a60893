package cli

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"go-crontab/api/view"

	"github.com/spf13/cobra"
)

const groupsPath = "/api/v1/groups"

func groupCommand(c *console) *cobra.Command {
	return newGroup("group", "Limit how many runs of a group of jobs execute at once, or start in a period", groupList(c), groupSet(c),
		removal{
			"group", "GROUP", "Delete groups that no job uses", "  go-crontab group rm database", groupPath,
			groupsPath, "group",
		}.command(c))
}

func groupList(c *console) *cobra.Command {
	cmd := &cobra.Command{
		Use: "ls", Short: "List the groups and their running and waiting runs", Args: nothing,
		Example: "  go-crontab group ls",
	}

	r := newRemote(c, cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		groups, raw, err := list[view.Group](cmd.Context(), r, groupsPath, nil, 0)
		if err != nil {
			return err
		}

		return r.list(raw, func(i int) string { return groups[i].Name }, func() error {
			if len(groups) == 0 {
				c.notef("There are no groups yet. To create one:  %s group set NAME --slots 3\n", program())
				return nil
			}

			t := &table{
				columns: []column{
					{head: "GROUP", shrink: true}, {head: "RUNNING", right: true}, {head: "STARTS", right: true},
					{head: "WAITING", right: true}, {head: "JOBS", right: true},
				},
			}

			for _, g := range groups {
				t.add(text(g.Name), text(slotsUsed(&g)), text(rateUsed(&g)), text(fmt.Sprint(g.Waiting)),
					text(fmt.Sprint(g.Jobs)))
			}
			return r.table(t)
		})
	}

	return cmd
}

// slotsUsed describes how many slots of a group are in use, such as 2/3.
func slotsUsed(g *view.Group) string {
	if g.Slots == 0 {
		return fmt.Sprint(g.Executing)
	}
	return fmt.Sprintf("%d/%d", g.Executing, g.Slots)
}

// rateUsed describes how many starts of a group's rate are used up, such as 7 of 10/1m.
func rateUsed(g *view.Group) string {
	if g.Rate == "" || g.Starts == nil {
		return ""
	}
	return fmt.Sprintf("%d of %s", *g.Starts, g.Rate)
}

func groupSet(c *console) *cobra.Command {
	var slots, rate string
	cmd := &cobra.Command{
		Use: "set GROUP [--slots N] [--rate STARTS/PERIOD]", Short: "Create a group, or change what it allows",
		Args: wants(1, 1, "GROUP"),
		Long: `Create a group, or change its slots: how many runs of its jobs may execute at once in the whole
cluster; or its rate: how many may start within any period. What is not given stays as it is. A job
joins a group with job add --group. Runs without a free slot, or beyond the rate, wait. The run with
the highest priority goes first, then the earliest due time.`,
		Example: `  go-crontab group set database --slots 3
  go-crontab job add reindex --group database --schedule '0 3 * * *' -- reindex.sh
  go-crontab group set mailer --rate 10/1m
  go-crontab group set mailer --slots 2 --rate none`,
	}

	r := newRemote(c, cmd)
	cmd.Flags().StringVar(&slots, "slots", "", `how many runs of the group may execute at once, or "none" for no limit`)
	cmd.Flags().StringVar(&rate, "rate", "", `how many may start in a period, such as 10/1m, or "none"`)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if !cmd.Flags().Changed("slots") && !cmd.Flags().Changed("rate") {
			return usageError("--slots is missing: give how many runs may execute at once, such as --slots 3, or a " +
				"rate, such as --rate 10/1m")
		}

		was, _, err := get[view.Group](cmd.Context(), r, groupPath(args[0]), nil)
		if err != nil && !isStatus(err, http.StatusNotFound) {
			return err
		}
		want, err := groupWanted(cmd, &was, slots, rate)
		if err != nil {
			return err
		}

		g, raw, err := ask[view.Group](cmd.Context(), r, http.MethodPut, groupPath(args[0]), nil, want)
		if err != nil {
			return err
		}
		return r.object(c, raw, g.Name, func() error {
			c.printf("group %s: %s\n", plain(g.Name), allowed(&g))
			return nil
		})
	}

	return cmd
}

// groupWanted returns the group with the given flags applied. All other settings stay.
func groupWanted(cmd *cobra.Command, was *view.Group, slots, rate string) (map[string]any, error) {
	want := map[string]any{}
	if was.Slots != 0 {
		want["slots"] = was.Slots
	}
	if was.Rate != "" {
		want["rate"] = was.Rate
	}

	if cmd.Flags().Changed("slots") {
		n, err := strconv.Atoi(slots)
		if err != nil && slots != noLimit {
			return nil, usageError(`--slots %q: want a whole number, or "none" for no limit`, slots)
		}
		if want["slots"] = n; slots == noLimit {
			delete(want, "slots")
		}
	}
	if cmd.Flags().Changed("rate") {
		if want["rate"] = rate; rate == noLimit {
			delete(want, "rate")
		}
	}
	return want, nil
}

// allowed says in words what a group allows.
func allowed(g *view.Group) string {
	var parts []string
	switch {
	case g.Slots == 1:
		parts = append(parts, "1 slot")
	case g.Slots > 1:
		parts = append(parts, fmt.Sprintf("%d slots", g.Slots))
	}
	if g.Rate != "" {
		parts = append(parts, "rate "+g.Rate)
	}
	return strings.Join(parts, ", ")
}

func groupPath(name string) string { return groupsPath + "/" + url.PathEscape(name) }
