package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go-crontab/internal/bench"
)

// pageOf writes reports as Markdown: the machines, a table of the cost of fires, one of idle nodes,
// one of the API, and links to the plots, which tools/benchplot draws. plots is the folder of the
// plots relative to the page. If several reports have the same result, the latest one counts.
func pageOf(reports []*bench.Report, plots string) string {
	reports = slices.Clone(reports)
	slices.SortStableFunc(reports, func(a, b *bench.Report) int { return a.At.Compare(b.At) })

	type shown struct {
		*bench.Result
		of *bench.Report
	}
	var all []shown
	for _, r := range reports {
		for i := range r.Results {
			x := shown{&r.Results[i], r}
			if at := slices.IndexFunc(all, func(s shown) bool {
				return s.Name() == x.Name() && binlog(s.of) == binlog(r)
			}); at >= 0 {
				all[at] = x
			} else {
				all = append(all, x)
			}
		}
	}

	place := map[string]int{}
	for i, s := range bench.Scenarios() {
		place[s.Name] = i
	}

	slices.SortStableFunc(all, func(a, b shown) int { return cmp.Compare(place[a.Scenario], place[b.Scenario]) })

	var b strings.Builder
	for _, line := range machines(reports) {
		fmt.Fprintf(&b, "%s\n", line)
	}

	var fires, idle, writes, pictures strings.Builder
	noisy, byName := false, results{}
	for _, x := range all {
		name := x.Name()
		if binlog(x.of) {
			name += binlogged
		}

		byName[name] = x.Result
		if x.Noisy {
			name, noisy = name+" ¹", true
		}

		switch {
		case x.Idle != nil:
			fmt.Fprintf(&idle, "| %s | %s | %.2f %% | %s | %.0f MB | %s |\n", name, figure(x.Idle.Statements),
				x.Idle.NodeCPU, percentOr(x.Idle.ServerCPU, 2), x.Cost.NodeMB, spread(x.Result))
		case x.Writes != nil:
			w := x.Writes
			fmt.Fprintf(&writes, "| %s | %s | %.1f / %.1f ms | %.1f | %.0f B | %s |\n", name, figure(x.Rate), w.P50,
				w.P99, w.Statements, w.Redo, spread(x.Result))
		default:
			limit := "–"
			if x.Limit != nil {
				limit = fmt.Sprintf("%.2f of %s", x.Limit.Ratio, figure(x.Limit.Rate))
			}
			fmt.Fprintf(&fires,
				"| %s | %s | %s / %s / %s ms | %.3f | %.0f B | %.0f %%, %.0f MB | %s | %s | %s | %s |\n", name,
				figure(x.Rate),
				figure(x.Late.P50), figure(x.Late.P99), figure(x.Late.Max), x.Cost.Statements,
				x.Cost.Redo+x.Cost.Binlog, x.Cost.NodeCPU, x.Cost.NodeMB,
				percentOr(x.Cost.ServerCPU, 0), limit, words(x.Account), spread(x.Result))
		}

		if len(x.Series) > 1 {
			fmt.Fprintf(&pictures, "![%s](%s/%s)\n", x.Name(), plots, plotName(x.Result, x.of))
		}
	}

	part := func(intro, head string, columns int, rows string) {
		if rows != "" {
			fmt.Fprintf(&b, "\n%s\n\n%s\n|%s\n%s", intro, head, strings.Repeat("---|", columns), rows)
		}
	}

	part("What was asked of it, and how far it comes: 1 and more is reached. "+
		"Each line is measured by `go-crontab bench` and what its last column says; `make bench`\n"+
		"measures all of them.",
		"| mark | asked | measured | reached | command |", 5, marksTable(byName))
	part("What fires took. Of several runs the one in the middle is shown, "+
		"and the rates of the slowest and the fastest. The node's processor time is that of all\n"+
		"nodes together, of one processor; bytes are those of the server's redo log, "+
		"and of its binary log if it has one. The limit is what the machine did in\n"+
		"the same run with nothing of ours in the way: see `go-crontab bench --help`.",
		"| scenario | fires per second | lateness p50 / p99 / max | statements per fire | log per fire | node | "+
			"server CPU | of the limit | due times with one record | runs |", 10, fires.String())
	part("Nodes with nothing to do, each.",
		"| scenario | statements per second | node CPU | server CPU | node memory | runs |", 6, idle.String())
	part("Jobs created through the API of one node.",
		"| scenario | jobs per second | a request, p50 / p99 | statements per job | redo log per job | runs |",
		6, writes.String())

	if noisy {
		b.WriteString("\n¹ The machine was too noisy to conclude anything from it: " +
			"equal pieces of work differed by more than a quarter.\n")
	}

	if pictures.Len() > 0 {
		fmt.Fprintf(&b, "\n%s", pictures.String())
	}
	return b.String()
}

// binlog reports whether the server wrote a binary log.
func binlog(r *bench.Report) bool { return strings.EqualFold(r.Machine.Settings["log_bin"], "ON") }

// machines describes each machine that reports were made on.
func machines(reports []*bench.Report) []string {
	when := map[string][]*bench.Report{}
	for _, r := range reports {
		m := r.Machine
		where := "of somebody's choice"
		if m.Private {
			where = "private, on the same machine"
		}

		cpu := m.CPU
		if cpu == "" {
			cpu = "unknown make"
		}

		var settings []string
		for _, name := range slices.Sorted(maps.Keys(m.Settings)) {
			settings = append(settings, fmt.Sprintf("`%s=%s`", name, m.Settings[name]))
		}

		line := fmt.Sprintf("%s, %s of %s; server %s (%s) with %s", m.OS, processors(m.Cores), cpu, m.Server,
			where, strings.Join(settings, ", "))
		when[line] = append(when[line], r)
	}

	var out []string
	for _, line := range slices.Sorted(maps.Keys(when)) {
		var versions []string
		low, high, results := when[line][0].At, when[line][0].At, 0
		worst := 0.0
		for _, r := range when[line] {
			versions = append(versions, r.Version)
			if r.At.After(high) {
				high = r.At
			}
			results += len(r.Results)
			for _, x := range r.Results {
				worst = max(worst, x.Noise)
			}
		}

		slices.Sort(versions)
		days := low.Format("2006-01-02")
		if last := high.Format("2006-01-02"); last != days {
			days += " to " + last
		}

		out = append(out,
			fmt.Sprintf("Measured on %s with version %s: %s. Equal pieces of work differed by up to %.0f %% meanwhile.",
				days, strings.Join(slices.Compact(versions), ", "), line, worst*100))
	}

	return out
}

// plotName is the file that tools/benchplot draws a result into.
func plotName(x *bench.Result, of *bench.Report) string {
	name := "bench-" + fileName(x.Name())
	if binlog(of) {
		name += "-binlog"
	}
	return name + ".svg"
}

// fileName makes a name safe for all file systems.
func fileName(name string) string {
	return strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' || c >= '0' && c <= '9' {
			return c
		}
		return '-'
	}, strings.ToLower(name))
}

func processors(n int) string {
	if n == 1 {
		return "1 processor"
	}
	return fmt.Sprintf("%d processors", n)
}

// words describes an account.
func words(a bench.Account) string {
	switch {
	case !a.OK():
		return fmt.Sprintf("**%d missing, %d twice, %d early**", a.Missing, a.Doubled, a.Early)
	case len(a.Other) > 0 || a.Open > 0:
		var other []string
		for _, o := range slices.Sorted(maps.Keys(a.Other)) {
			other = append(other, fmt.Sprintf("%d %s", a.Other[o], o))
		}
		if a.Open > 0 {
			return fmt.Sprintf("%d of %d (%s)", a.Once, a.Due,
				strings.Join(append(other, "the rest not reached"), ", "))
		}
		return fmt.Sprintf("all %d (%s)", a.Due, strings.Join(other, ", "))
	}

	return fmt.Sprintf("all %d", a.Due)
}

// spread returns the number of runs and their range.
func spread(r *bench.Result) string {
	if len(r.Rates) < 2 {
		return "1"
	}
	return fmt.Sprintf("%d: %s–%s", len(r.Rates), figure(slices.Min(r.Rates)), figure(slices.Max(r.Rates)))
}

func percentOr(p float64, digits int) string {
	if p == 0 {
		return "–"
	}
	return fmt.Sprintf("%.*f %%", digits, p)
}

// figure formats a number with a sensible precision.
func figure(f float64) string {
	switch {
	case f >= 1000:
		text := fmt.Sprintf("%.0f", f)
		for i := len(text) - 3; i > 0; i -= 3 {
			text = text[:i] + "," + text[i:]
		}
		return text
	case f >= 100:
		return fmt.Sprintf("%.0f", f)
	case f >= 10:
		return fmt.Sprintf("%.1f", f)
	}

	return fmt.Sprintf("%.2f", f)
}

// The lines around the written part of the page.
const (
	pageBegin = "<!-- bench: written by make bench -->"
	pageEnd   = "<!-- bench: end -->"
)

// replace puts text between the two lines of a page.
func replace(page, text string) (string, error) {
	before, rest, begun := strings.Cut(page, pageBegin+"\n")
	_, after, ended := strings.Cut(rest, pageEnd)
	if !begun || !ended {
		return "", fmt.Errorf("the page has no lines %q and %q, in this order", pageBegin, pageEnd)
	}
	return before + pageBegin + "\n\n" + strings.Trim(text, "\n") + "\n\n" + pageEnd + after, nil
}
