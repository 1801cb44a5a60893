//go:build unix

package cli

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"os"
	"slices"
	"strings"

	"go-crontab/api"
	"go-crontab/internal/auth"
	"go-crontab/internal/bench"
	"go-crontab/node"

	"github.com/spf13/cobra"
)

func benchCommand(c *console) *cobra.Command {
	var (
		o       bench.Options
		out     output
		compare string
	)

	cmd := &cobra.Command{
		Use:   "bench [SCENARIO…]",
		Short: "Measure how much load a MySQL server can carry",
		Long: `Measure how much load a MySQL server can carry: runs per second, how late they start, and what each
costs. Every due time is compared with the history, where each must have exactly one record.

The benchmark creates its own schema on the server of --dsn and drops it at the end, also after
Ctrl-C. It never touches a schema that is not empty, but it does load the server; so it ignores
GOCRONTAB_DSN. Without --dsn it starts a private server with durable commits on this machine, as dev
does. Other work on the server and on this machine affects the results; the benchmark says so if the
machine is too busy for a conclusion.

` + scenarioList(),
		Example: `  go-crontab bench
  go-crontab bench steady --rate 5000 --for 30s --repeat 3
  go-crontab bench --dsn 'bench:secret@tcp(db:3306)/' steady herd burst -o json > before.json
  go-crontab bench steady herd burst --compare before.json`,
		ValidArgsFunction: cobra.FixedCompletions(bench.Names(), cobra.ShellCompDirectiveNoFileComp),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Scenarios, o.Version = args, readVersion().Version
			if err := o.Check(); err != nil {
				return usageError("%w", err)
			}

			var before *bench.Report
			if compare != "" {
				text, err := os.ReadFile(compare)
				if err != nil {
					return usageError("--compare: %w", err)
				}
				if before, err = bench.ReadReport(text); err != nil {
					return usageError("--compare %s: %w", compare, err)
				}
			}

			o.Say = func(format string, args ...any) { c.notef("  "+format+"\n", args...) }
			stop := onSignals()
			defer stop.forget()

			r, err := bench.Run(stop.drain, o)
			if r == nil {
				return err
			}

			if stop.drain.Err() != nil {
				c.notef("stopped (%v); results so far:\n", context.Cause(stop.drain))
			}
			if printErr := c.printBench(&out, r, before); printErr != nil {
				return printErr
			}

			if err != nil {
				return err
			}

			return benchVerdict(r)
		},
	}

	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&o.DSN, "dsn", "", "the MySQL server, as user:password@tcp(host:3306)/ (default a private one)")
	flags.StringVar(&o.Schema, "schema", "", "an empty schema to use, if the user may not create one")
	flags.IntVar(&o.Rate, "rate", 0, "runs per second of steady loads (default 1000)")
	durationVar(flags, &o.For, "for", 0, "how long to measure steady loads (default 10s)")
	flags.IntVar(&o.Jobs, "jobs", 0, "number of jobs in a burst or a table (default depends on the scenario)")
	flags.IntVar(&o.Nodes, "nodes", 0, "number of node processes (default depends on the scenario, mostly 1)")
	durationVar(flags, &o.RoundTrip, "round-trip", 0, "network delay to add to each round trip to the server")
	flags.BoolVar(&o.Binlog, "binlog", false, "have the private server write a binary log, flushed at each commit")
	flags.IntVar(&o.Repeat, "repeat", 1, "run each scenario this often, and use the median")
	flags.StringVar(&compare, "compare", "", "file with the JSON of an earlier bench to compare with")
	out.flags(cmd, "table", "json", "yaml")
	_ = cmd.MarkFlagFilename("compare", "json")

	return cmd
}

// benchNodeCommand is the command of the node processes that bench starts.
func benchNodeCommand(c *console) *cobra.Command {
	return &cobra.Command{
		Use: bench.Command, Hidden: true, Args: nothing,
		RunE: func(*cobra.Command, []string) error { return bench.BeNode(c.in, c.out, c.err, benchAPI) },
	}
}

// benchAPI serves the API of a bench node, without a rate limit.
func benchAPI(ctx context.Context, n *node.Node, l net.Listener) (token string, err error) {
	if token, err = (auth.Issuer{DB: n.Reads().DB}).Bootstrap(ctx, true); err != nil {
		return "", err
	}
	server := api.New(api.Config{
		DB: n.Reads(), Editor: api.EditorOf(n.Editor), Now: n.Now, Ready: n.Ready, Node: "bench",
		Version: readVersion().Version,
		Listen:  l.Addr().String(), Rate: -1, Log: slog.New(slog.DiscardHandler),
	})
	go func() { _ = server.Serve(ctx, l) }() // ends with ctx; if it ends earlier, failing requests show that
	return token, nil
}

func scenarioList() string {
	var b strings.Builder
	b.WriteString("Scenarios (* marks those that run when none is named):\n")
	for _, s := range bench.Scenarios() {
		star := " "
		if s.Quick {
			star = "*"
		}
		fmt.Fprintf(&b, "  %s %-12s %s\n", star, s.Name, s.About)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// benchVerdict returns an error if a record is missing or duplicated. Such a record is a bug,
// however fast the cluster is.
func benchVerdict(r *bench.Report) error {
	for i := range r.Results {
		if a := r.Results[i].Account; !a.OK() {
			return fmt.Errorf("%s: %d due times without a record, %d with two, %d started early; "+
				"this is a bug, please report it with this output",
				r.Results[i].Name(), a.Missing, a.Doubled, a.Early)
		}
	}
	return nil
}

func (c *console) printBench(out *output, r, before *bench.Report) error {
	if before == nil {
		return out.object(c, r, "", func() error { return c.benchTable(r) })
	}

	changes := bench.Compare(before, r)
	v := struct {
		*bench.Report
		Changes []bench.Change `json:"changes"`
	}{r, changes}
	return out.object(c, v, "", func() error {
		if err := c.benchTable(r); err != nil {
			return err
		}
		c.printf("\ncompared with %s of %s\n", before.Version, whole(&before.At, c.zone()))
		return c.changeTable(changes)
	})
}

func (c *console) benchTable(r *bench.Report) error {
	m := r.Machine
	where := "given"
	if m.Private {
		where = "private, on this machine"
	}

	c.printf("%s, %d processors of %s; server %s (%s), flush at commit %s, binlog %s\n\n", m.OS, m.Cores,
		orUnknown(m.CPU), m.Server, where,
		orUnknown(m.Settings["innodb_flush_log_at_trx_commit"]), orUnknown(m.Settings["log_bin"]))
	t := table{columns: []column{{head: "SCENARIO", shrink: true}, {head: "FIRES/S", right: true},
		{head: "P50 MS", right: true}, {head: "P99 MS", right: true},
		{head: "MAX MS", right: true}, {head: "STATEMENTS", right: true}, {head: "REDO B", right: true, drop: true},
		{head: "NODE CPU", right: true, drop: true},
		{head: "NODE MB", right: true, drop: true}, {head: "SERVER CPU", right: true, drop: true},
		{head: "OF LIMIT", right: true, drop: true}, {head: "ACCOUNT"}}}

	var notes []string
	for i := range r.Results {
		x := &r.Results[i]
		if x.Noisy {
			notes = append(notes, fmt.Sprintf(
				"%s: the machine was too noisy to conclude anything (equal work differed by %.0f %%); run it again when it is quiet",
				x.Name(), x.Noise*100))
		}
		if x.Limit != nil {
			notes = append(notes, fmt.Sprintf("%s: limit %.0f per second: %s", x.Name(), x.Limit.Rate, x.Limit.What))
		}
		if w := x.Writes; w != nil {
			notes = append(notes, fmt.Sprintf(
				"%s: %.0f jobs per second; a request took %.1f ms (p50), %.1f ms (p99); a job %.1f statements and %.0f bytes of redo log",
				x.Name(), x.Rate, w.P50, w.P99, w.Statements, w.Redo))
			continue
		}

		if x.Idle != nil {
			notes = append(notes, fmt.Sprintf(
				"%s: each node asks %.1f statements per second and takes %.1f %% of a processor, the server %.1f %%",
				x.Name(), x.Idle.Statements, x.Idle.NodeCPU, x.Idle.ServerCPU))
			continue
		}

		of := ""
		if x.Limit != nil {
			of = fmt.Sprintf("%.2f", x.Limit.Ratio)
		}

		account := cell{text: "ok", colour: green}
		if !x.Account.OK() {
			account = cell{
				text: fmt.Sprintf("%d missing, %d doubled, %d early", x.Account.Missing, x.Account.Doubled,
					x.Account.Early), colour: red,
			}
		} else if len(x.Account.Other) > 0 {
			account = cell{text: "ok:" + others(x.Account.Other)}
		}

		t.add(text(x.Name()), text(fmt.Sprintf("%.0f",
			x.Rate)), text(fmt.Sprintf("%.2f", x.Late.P50)), text(fmt.Sprintf("%.2f", x.Late.P99)),
			text(fmt.Sprintf("%.1f",
				x.Late.Max)), text(fmt.Sprintf("%.3f", x.Cost.Statements)), text(fmt.Sprintf("%.0f", x.Cost.Redo)),
			text(fmt.Sprintf("%.0f%%",
				x.Cost.NodeCPU)), text(fmt.Sprintf("%.0f",
				x.Cost.NodeMB)), text(fmt.Sprintf("%.0f%%", x.Cost.ServerCPU)), text(of), account)
	}

	if len(t.rows) > 0 {
		if err := t.print(c.out, terminalWidth(c.out), colourful(c.out)); err != nil {
			return err
		}
	}

	for _, n := range notes {
		c.printf("%s\n", n)
	}

	return nil
}

func others(outcomes map[string]int64) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(outcomes)) {
		fmt.Fprintf(&b, " %d %s", outcomes[name], name)
	}
	return b.String()
}

func (c *console) changeTable(changes []bench.Change) error {
	if len(changes) == 0 {
		c.printf("the two results have no scenario in common\n")
		return nil
	}

	t := table{columns: []column{{head: "SCENARIO", shrink: true}, {head: "BEFORE", right: true},
		{head: "NOW", right: true}, {head: "RATIO", right: true},
		{head: "P99", right: true}, {head: "STATEMENTS", right: true}, {head: ""}}}
	for _, x := range changes {
		word := "within the noise"
		if x.Distinct {
			word = "differs"
		}
		t.add(text(x.Name), text(fmt.Sprintf("%.1f",
			x.Before)), text(fmt.Sprintf("%.1f", x.After)), text(fmt.Sprintf("×%.2f", x.Ratio)),
			text(fmt.Sprintf("×%.2f", x.P99)), text(fmt.Sprintf("×%.2f", x.Cost)), text(word))
	}

	return t.print(c.out, terminalWidth(c.out), colourful(c.out))
}

func orUnknown(s string) string {
	if s == "" {
		return "unknown"
	}
	return s
}
