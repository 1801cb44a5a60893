package cli

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"go-crontab/api/view"

	"github.com/spf13/cobra"
)

// handlerView is a handler, with the nodes that have it and the number of jobs that use it.
type handlerView struct{ view.Handler }

const handlersPath = "/api/v1/handlers"

func handlerCommand(c *console) *cobra.Command {
	return newGroup("handler",
		"List and disable handlers, the Go functions of programs that embed a node", handlerList(c),
		handlerChange(c, "disable", "Stop starting jobs with a handler, on all nodes", "disabled"),
		handlerChange(c, "enable", "Start jobs with a disabled handler again", "enabled"))
}

func handlerList(c *console) *cobra.Command {
	cmd := &cobra.Command{
		Use: "ls", Aliases: []string{"list"},
		Short: "List the handlers, their nodes, and how many jobs use them", Args: nothing,
		Example: "  go-crontab handler ls",
	}

	r := newRemote(c, cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		handlers, raw, err := all[handlerView](cmd.Context(), r, handlersPath)
		if err != nil {
			return err
		}

		return r.list(raw, func(i int) string { return handlers[i].Key }, func() error {
			if len(handlers) == 0 {
				c.notef("There are no handlers. A program that embeds a node registers them.\n")
				return nil
			}

			t := &table{
				columns: []column{
					{head: "HANDLER", shrink: true}, {head: "STATE"}, {head: "JOBS", right: true},
					{head: "NODES", shrink: true}, {head: "REASON", shrink: true},
				},
			}

			for _, h := range handlers {
				state := h.state()
				t.add(text(h.Key), cell{state, statusColour(state)}, text(fmt.Sprint(h.Jobs)),
					text(strings.Join(h.Nodes, ", ")), text(h.why(c.now())))
			}
			return r.table(t)
		})
	}

	return cmd
}

// state returns the state of the handler in one word.
func (h *handlerView) state() string {
	switch {
	case h.Disabled:
		return "disabled"
	case len(h.Nodes) == 0:
		return "nowhere"
	}
	return "ready"
}

// why says why, by whom and how long ago the handler was disabled.
func (h *handlerView) why(now time.Time) string {
	n := nodeView{view.Node{Cordoned: h.Disabled, Reason: h.Reason, By: h.By, Since: h.Since}}
	return n.why(now)
}

// handlerChange builds the commands disable and enable.
func handlerChange(c *console, verb, short, done string) *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use: verb + " KEY", Short: short, Args: wants(1, 1, "KEY (of the handler)"),
		Example: "  go-crontab handler " + verb + " invoice",
	}

	if verb == "disable" {
		cmd.Long = `Stop starting jobs with a handler, on all nodes. Until the handler is enabled, their due times end
skipped with this reason.`
		cmd.Flags().StringVar(&reason, "reason", "", "why the handler is disabled; lists show it")
	}

	r := newRemote(c, cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		body := map[string]string{}
		if reason != "" {
			body["reason"] = reason
		}

		h, raw, err := ask[handlerView](cmd.Context(), r, http.MethodPost,
			handlersPath+"/"+url.PathEscape(args[0])+"/"+verb, nil, body)
		if err != nil {
			return err
		}
		return r.object(c, raw, h.Key, func() error {
			c.printf("%s handler %s, used by %s\n", done, plain(h.Key), counted(h.Jobs, "job"))
			if len(h.Nodes) == 0 {
				c.notef("No node has a handler of this name now. This applies when one does.\n")
			}
			return nil
		})
	}

	return cmd
}
