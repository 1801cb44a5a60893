package cli

import (
	"fmt"
	"net/http"
	"net/url"

	"go-crontab/api/view"

	"github.com/spf13/cobra"
)

const groupsPath = "/api/v1/groups"

func groupCommand(c *console) *cobra.Command {
	return newGroup("group", "Limit how many runs of a group of jobs execute at once", groupList(c), groupSet(c),
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
					{head: "GROUP", shrink: true}, {head: "RUNNING", right: true}, {head: "WAITING", right: true},
					{head: "JOBS", right: true},
				},
			}

			for _, g := range groups {
				t.add(text(g.Name), text(fmt.Sprintf("%d/%d", g.Executing, g.Slots)), text(fmt.Sprint(g.Waiting)),
					text(fmt.Sprint(g.Jobs)))
			}
			return r.table(t)
		})
	}

	return cmd
}

func groupSet(c *console) *cobra.Command {
	slots := 0
	cmd := &cobra.Command{
		Use: "set GROUP --slots N", Short: "Create a group, or change its number of slots",
		Args: wants(1, 1, "GROUP"),
		Long: `Create a group, or change its number of slots: how many runs of its jobs may execute at once in the
whole cluster. A job joins a group with job add --group. Runs without a free slot wait. A free slot
goes to the run with the highest priority, then the earliest due time.`,
		Example: "  go-crontab group set database --slots 3\n  go-crontab job add reindex --group database --schedule '0 3 * * *' -- reindex.sh",
	}

	r := newRemote(c, cmd)
	cmd.Flags().IntVar(&slots, "slots", 0, "how many runs of the group may execute at once")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if !cmd.Flags().Changed("slots") {
			return usageError("--slots is missing: give how many runs may execute at once, such as --slots 3")
		}

		g, raw, err := ask[view.Group](cmd.Context(), r, http.MethodPut, groupPath(args[0]), nil,
			map[string]int{"slots": slots})
		if err != nil {
			return err
		}
		return r.object(c, raw, g.Name, func() error {
			c.printf("group %s: %d slots\n", plain(g.Name), g.Slots)
			return nil
		})
	}

	return cmd
}

func groupPath(name string) string { return groupsPath + "/" + url.PathEscape(name) }
