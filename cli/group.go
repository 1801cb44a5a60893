package cli

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"go-crontab/api/view"

	"github.com/spf13/cobra"
)

const groupsPath = "/api/v1/groups"

func groupCommand(c *console) *cobra.Command {
	return newGroup("group", "Limit how many runs of some jobs execute at once", groupList(c), groupSet(c),
		removal{
			"group", "GROUP", "Delete groups to which no job refers", "  go-crontab group rm database", groupPath, nil,
		}.command(c))
}

func groupList(c *console) *cobra.Command {
	cmd := &cobra.Command{
		Use: "ls", Short: "List the groups, and what executes and waits in them", Args: nothing,
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
				c.notef("There are no groups yet. To make one:  %s group set NAME SLOTS\n", program())
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
	cmd := &cobra.Command{
		Use: "set GROUP SLOTS", Short: "Make a group, or change how many runs it lets execute at once",
		Args: wants(2, 2, "the group and the number of its slots"),
		Long: `Make a group, or change how many runs of its jobs may execute at once in the whole cluster. A job joins a group by
its field group. What finds no free slot waits; the higher priority goes first, then the earlier due time.`,
		Example: "  go-crontab group set database 3\n  go-crontab job add reindex --group database --schedule '0 3 * * *' -- reindex.sh",
	}

	r := newRemote(c, cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		slots, err := strconv.Atoi(args[1])
		if err != nil {
			return usageError("%q is not a number of slots", args[1])
		}

		g, raw, err := ask[view.Group](cmd.Context(), r, http.MethodPut, groupPath(args[0]), nil,
			map[string]int{"slots": slots})
		if err != nil {
			return err
		}
		return r.object(c, raw, g.Name, func() error {
			c.printf("group %s: %d at once\n", plain(g.Name), g.Slots)
			return nil
		})
	}

	return cmd
}

func groupPath(name string) string { return groupsPath + "/" + url.PathEscape(name) }
