package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"go-crontab/api/view"

	"github.com/spf13/cobra"
)

// nodeView is a node with its cordon.
type nodeView struct{ view.Node }

const nodesPath = "/api/v1/nodes"

const nodeArgument = "NODE (its name)"

func nodePath(name string) string { return nodesPath + "/" + url.PathEscape(name) }

func nodeCommand(c *console) *cobra.Command {
	return newGroup("node", "List nodes, and take them out of service for maintenance", nodeList(c),
		nodeCordon(c), nodeDrain(c), nodeUncordon(c), nodeLogLevel(c))
}

func nodeList(c *console) *cobra.Command {
	cmd := &cobra.Command{
		Use: "ls", Aliases: []string{"list"}, Short: "List the nodes, their labels and handlers", Args: nothing,
		Example: "  go-crontab node ls\n  go-crontab node ls -o yaml",
	}

	r := newRemote(c, cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		nodes, raw, err := all[nodeView](cmd.Context(), r, nodesPath)
		if err != nil {
			return err
		}
		return r.list(raw, func(i int) string { return nodes[i].Name },
			func() error { return r.table(nodeTable(nodes, c.now())) })
	}

	return cmd
}

// all reads a whole list that has no pages.
func all[T any](ctx context.Context, r *remote, path string) (items []T, raw view.Page[json.RawMessage], err error) {
	raw, body, err := get[view.Page[json.RawMessage]](ctx, r, path, nil)
	if err != nil {
		return nil, raw, err
	}
	var v view.Page[T]
	if err := json.Unmarshal(body, &v); err != nil {
		return nil, raw, fmt.Errorf("cannot read the response of %s: %w", r.server+path, err)
	}
	return v.Items, raw, nil
}

func nodeTable(nodes []nodeView, now time.Time) *table {
	t := &table{columns: []column{
		{head: "NODE", shrink: true}, {head: "STATE"}, {head: "RUNNING", right: true},
		{head: "SLOTS", right: true, drop: true}, {head: "PREPARED", right: true, drop: true},
		{head: "LABELS", shrink: true}, {head: "HANDLERS", shrink: true}, {head: "REASON", shrink: true},
	}}

	for _, n := range nodes {
		t.add(text(n.Name), cell{string(n.State), statusColour(n.State)},
			text(fmt.Sprint(n.Executing)), text(fmt.Sprint(n.Slots)), text(fmt.Sprint(n.Prepared)),
			text(n.labels()), text(strings.Join(n.Handlers, ", ")), text(n.why(now)))
	}
	return t
}

// labels returns the labels that were set explicitly.
func (n *nodeView) labels() string {
	var out []string
	for _, k := range slices.Sorted(maps.Keys(n.Labels)) {
		switch {
		case k == "node" || k == "os" || k == "arch": // automatic labels
		case n.Labels[k] == "":
			out = append(out, k)
		default:
			out = append(out, k+"="+n.Labels[k])
		}
	}

	return strings.Join(out, ", ")
}

// why says since when a node has been gone. For a cordon it gives the reason, the author and the
// age.
func (n *nodeView) why(now time.Time) string {
	var parts []string
	if n.Gone != nil {
		parts = append(parts, string(n.State)+n.since(now))
	}
	if !n.Cordoned {
		return strings.Join(parts, ", ")
	}

	if n.Reason != "" {
		parts = append(parts, n.Reason)
	}
	if n.By != "" {
		parts = append(parts, "by "+n.By)
	}

	return strings.Join(append(parts, relative(n.Since, now)), ", ")
}

func nodeCordon(c *console) *cobra.Command {
	var f cordonFlags
	cmd := &cobra.Command{
		Use: "cordon NODE", Short: "Stop a node from taking new runs", Args: wants(1, 1, nodeArgument),
		ValidArgsFunction: completeNodes(c),
		Long: `Stop a node from taking new runs until it is uncordoned, even if it restarts. Its executing runs
finish, and other nodes take its prepared runs at once. When this command has ended, no run starts
on the node.`,
		Example: "  go-crontab node cordon web-1 --reason 'new disk'",
	}

	r := newRemote(c, cmd)
	f.flags(cmd, "cordoned")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return r.cordon(cmd.Context(), args[0], "cordon", &f)
	}
	return cmd
}

// cordonFlags are the flags of commands that change a node.
type cordonFlags struct {
	reason   string
	absentOK bool
}

func (f *cordonFlags) flags(cmd *cobra.Command, done string) {
	cmd.Flags().StringVar(&f.reason, "reason", "", "why the node is "+done+"; lists show it")
	absentFlag(cmd, &f.absentOK, "node")
}

// change sends a change of a node.
func (r *remote) change(ctx context.Context, name, verb string, f *cordonFlags) (nodeView, json.RawMessage, error) {
	body := map[string]string{}
	if f.reason != "" {
		body["reason"] = f.reason
	}
	n, raw, err := ask[nodeView](ctx, r, http.MethodPost, nodePath(name)+"/"+verb, absent(f.absentOK), body)
	return n, raw, orAbsent(err)
}

// cordon changes a node's cordon and prints the result.
func (r *remote) cordon(ctx context.Context, name, verb string, f *cordonFlags) error {
	n, raw, err := r.change(ctx, name, verb, f)
	if err != nil {
		return err
	}
	return r.object(r.console, raw, n.Name, func() error {
		r.printf("%s is %s%s\n", plain(n.Name), n.State, n.work())
		if len(n.Sessions) == 0 && n.Cordoned {
			r.notef("The cluster has no node of this name now. The cordon applies when it joins.\n")
		}
		return nil
	})
}

// work describes the remaining work of a node, as the end of a sentence.
func (n *nodeView) work() string {
	if n.Executing == 0 || n.State == "ready" {
		return ""
	}
	return fmt.Sprintf(", %d executing", n.Executing)
}

func nodeUncordon(c *console) *cobra.Command {
	cmd := &cobra.Command{
		Use: "uncordon NODE", Short: "Let a node take new runs again", Args: wants(1, 1, nodeArgument),
		ValidArgsFunction: completeNodes(c),
		Example:           "  go-crontab node uncordon web-1",
	}
	r := newRemote(c, cmd)
	var f cordonFlags
	absentFlag(cmd, &f.absentOK, "node")
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return r.cordon(cmd.Context(), args[0], "uncordon", &f) }
	return cmd
}

func nodeDrain(c *console) *cobra.Command {
	var (
		f cordonFlags
		w waitFlags
	)

	cmd := &cobra.Command{
		Use: "drain NODE", Short: "Cordon a node, and with --wait, wait until it has no runs",
		Args: wants(1, 1, nodeArgument), ValidArgsFunction: completeNodes(c),
		Long: `Cordon a node, and with --wait, wait until it has no runs. Nothing is killed. The node's process
keeps running until you stop it; "node uncordon" puts it back into service. An unknown node ends
with exit code 3.`,
		Example: "  go-crontab node drain web-1 --wait && ssh web-1 reboot",
	}

	r := newRemote(c, cmd)
	f.flags(cmd, "drained")
	w.flags(cmd, "wait until the node has no runs")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := w.check(); err != nil {
			return err
		}
		if !w.wait {
			return r.cordon(cmd.Context(), args[0], "drain", &f)
		}
		return r.drain(cmd.Context(), args[0], &f, &w)
	}

	return cmd
}

// drainLook is the interval between two checks of a draining node.
const drainLook = 500 * time.Millisecond

// drain drains a node and waits until it has no work.
func (r *remote) drain(ctx context.Context, name string, f *cordonFlags, w *waitFlags) error {
	ctx, cancel := w.bounded(ctx)
	defer cancel()
	n, raw, err := r.change(ctx, name, "drain", f)
	if err != nil {
		return w.gaveUp(ctx, err, fmt.Sprintf("it is unknown whether %s was cordoned", plain(name)), "")
	}

	told := -1
	var p patience
	for !n.Drained {
		if n.Executing != told {
			told = n.Executing
			r.notef("%s: %s, %d executing\n", plain(n.Name), n.State, n.Executing)
		}

		select {
		case <-ctx.Done():
			return w.gaveUp(ctx, context.Cause(ctx), fmt.Sprintf("%s still has %d executing", plain(name), n.Executing),
				"it stays cordoned; to list its runs:  "+program()+" run ls --state running --node "+quote(name))
		case <-time.After(drainLook):
		}

		now, answer, err := get[nodeView](ctx, r, nodePath(name), nil)
		if !p.lasts(err) && ctx.Err() == nil {
			return err
		}
		if err != nil {
			continue
		}
		if n, raw = now, answer; !n.Cordoned {
			return &exitError{code: exitFailed, err: fmt.Errorf("%s was uncordoned meanwhile", plain(name))}
		}
	}

	return r.object(r.console, raw, n.Name, func() error {
		r.printf("%s is %s\n", plain(n.Name), orElse(n.State, "drained"))
		return nil
	})
}

// completeNodes completes names of nodes, if a server answers quickly.
func completeNodes(c *console) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		r, ok := completing(c, cmd)
		if !ok {
			return nil, cobra.ShellCompDirectiveError
		}

		nodes, _, err := all[nodeView](cmd.Context(), r, nodesPath)
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}

		var names []cobra.Completion
		for _, n := range nodes {
			if strings.HasPrefix(n.Name, typed) {
				names = append(names, cobra.CompletionWithDesc(n.Name, string(n.State)))
			}
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}

// waitingCard adds the waiting due times to the card of a job.
func waitingCard(d *card, waiting []view.JobWait, now time.Time) {
	for i, w := range waiting {
		name := ""
		if i == 0 {
			name = "waiting"
		}
		line := absolute(&w.Due, now.Location()) + ": " + w.Why
		if w.Until != nil {
			line += ", until " + both(w.Until, now)
		}
		d.add(name, line, yellow)
	}
}
