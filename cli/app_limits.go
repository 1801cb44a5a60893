package cli

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"go-crontab/api/view"
	"go-crontab/job"

	"github.com/spf13/cobra"
)

// unlimited reports whether there is no limit.
func unlimited(v *view.AppLimits) bool {
	return v.Jobs == 0 && v.RunsPerMinute == 0 && v.Waiting == 0 && v.Output == 0
}

const limitsPath = "/api/v1/limits"

func appLimits(c *console) *cobra.Command {
	var f limitFlags
	cmd := &cobra.Command{
		Use: "limits [APP]", Short: "Show or set the limits of an app", Args: wants(0, 1, "at most one APP"),
		Long: `Show the limits of apps and their current use, or set the limits of one app. A limit whose flag is
not given stays unchanged. Setting limits needs an admin of the whole cluster.

At its limit of jobs, an app cannot add jobs. At its limit of runs or of waiting runs, further due
times end skipped with a reason, and runs cannot be started by hand. Above its limit of kept output,
its oldest output is removed within minutes; the records of those runs stay. Other apps are not
affected.`,
		Example: `  go-crontab app limits
  go-crontab app limits billing --jobs 200 --runs-per-minute 600 --waiting 1000
  go-crontab app limits billing --kept-output 2GiB
  go-crontab app limits billing --jobs none
  go-crontab app limits billing --none`,
	}

	r := newRemote(c, cmd)
	f.flags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) == 0 && f.given(cmd):
			return usageError("APP is missing: %s APP with the limits to set", cmd.CommandPath())
		case len(args) == 0:
			return listAppLimits(cmd, c, r)
		case f.none && f.someGiven(cmd):
			return usageError("--none removes all limits; leave it out to set a limit")
		case f.none:
			return dropAppLimits(cmd, c, r, args[0])
		case f.someGiven(cmd):
			return setAppLimits(cmd, c, r, args[0], &f)
		}

		v, raw, err := get[view.AppLimits](cmd.Context(), r, appLimitsPath(args[0]), nil)
		if err != nil {
			return err
		}
		return showAppLimits(c, r, v, raw)
	}

	return cmd
}

// limitFlags are the limits as typed.
type limitFlags struct {
	jobs, runs, waiting, output string
	none                        bool
}

const noLimit = "none"

func (f *limitFlags) flags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.jobs, "jobs", "", `most jobs of the app, or "none" for no limit`)
	flags.StringVar(&f.runs, "runs-per-minute", "", `most runs that start in a minute, or "none"`)
	flags.StringVar(&f.waiting, "waiting", "",
		`most runs that wait for another run or for their group, or "none"`)
	flags.StringVar(&f.output, "kept-output", "", `most output that is kept, such as "2GiB", or "none"`)
	flags.BoolVar(&f.none, "none", false, "remove all limits")
}

func (f *limitFlags) someGiven(cmd *cobra.Command) bool {
	return slices.ContainsFunc([]string{"jobs", "runs-per-minute", "waiting", "kept-output"}, cmd.Flags().Changed)
}

func (f *limitFlags) given(cmd *cobra.Command) bool { return f.none || f.someGiven(cmd) }

// change applies the given flags to the limits.
func (f *limitFlags) change(cmd *cobra.Command, v *view.AppLimits) error {
	for _, flag := range []struct {
		name, typed string
		to          *int64
	}{{"jobs", f.jobs, &v.Jobs}, {"runs-per-minute", f.runs, &v.RunsPerMinute}, {"waiting", f.waiting, &v.Waiting}} {
		if !cmd.Flags().Changed(flag.name) {
			continue
		}
		if flag.typed == noLimit {
			*flag.to = 0
			continue
		}
		n, err := strconv.ParseInt(flag.typed, 10, 64)
		if err != nil || n < 1 {
			return usageError(`--%s %q: want a whole number of at least 1, or "none" for no limit`, flag.name,
				flag.typed)
		}
		*flag.to = n
	}
	return f.changeOutput(cmd, v)
}

// changeOutput applies the flag for the limit of kept output.
func (f *limitFlags) changeOutput(cmd *cobra.Command, v *view.AppLimits) error {
	if !cmd.Flags().Changed("kept-output") {
		return nil
	}
	if f.output == noLimit {
		v.Output = 0
		return nil
	}

	size, err := job.ParseSize(f.output)
	if err != nil || size < 1 {
		return usageError(`--kept-output %q: want a size such as "512MiB" or "2GiB", or "none" for no limit`, f.output)
	}

	v.Output = size
	return nil
}

func appLimitsPath(app string) string { return "/api/v1/apps/" + url.PathEscape(app) + "/limits" }

// setAppLimits changes the given limits and keeps the others.
func setAppLimits(cmd *cobra.Command, c *console, r *remote, app string, f *limitFlags) error {
	v, _, err := get[view.AppLimits](cmd.Context(), r, appLimitsPath(app), nil)
	if err != nil {
		return err
	}

	v.App, v.Use = "", nil
	if err := f.change(cmd, &v); err != nil {
		return err
	}
	if unlimited(&v) {
		return dropAppLimits(cmd, c, r, app)
	}

	v, raw, err := ask[view.AppLimits](cmd.Context(), r, http.MethodPut, appLimitsPath(app), nil, v)
	if err != nil {
		return err
	}

	r.warnOfApps(cmd.Context(), app)
	return showAppLimits(c, r, v, raw)
}

func dropAppLimits(cmd *cobra.Command, c *console, r *remote, app string) error {
	if _, err := r.call(cmd.Context(), http.MethodDelete, appLimitsPath(app), nil, nil); err != nil {
		return err
	}
	v, raw, err := get[view.AppLimits](cmd.Context(), r, appLimitsPath(app), nil)
	if err != nil {
		return err
	}
	return showAppLimits(c, r, v, raw)
}

func showAppLimits(c *console, r *remote, v view.AppLimits, raw []byte) error {
	return r.object(c, raw, v.App, func() error {
		if unlimited(&v) {
			c.printf("app %s has no limits\n", plain(v.App))
			return nil
		}
		return r.table(limitsTable([]view.AppLimits{v}))
	})
}

func listAppLimits(cmd *cobra.Command, c *console, r *remote) error {
	v, raw, err := get[view.Page[view.AppLimits]](cmd.Context(), r, limitsPath, nil)
	if err != nil {
		return err
	}

	var names []string
	for _, l := range v.Items {
		names = append(names, l.App)
	}
	return r.object(c, raw, strings.Join(names, "\n"), func() error {
		if len(v.Items) == 0 {
			c.notef("No app has limits. To set some:  %s app limits APP --jobs N\n", program())
			return nil
		}
		return r.table(limitsTable(v.Items))
	})
}

// limitsTable shows limits and their use.
func limitsTable(items []view.AppLimits) *table {
	t := &table{columns: []column{
		{head: "APP", shrink: true}, {head: "JOBS", right: true}, {head: "RUNS/MINUTE", right: true},
		{head: "WAITING", right: true},
		{head: "KEPT OUTPUT", right: true},
	}}

	for _, v := range items {
		if v.Use == nil {
			continue
		}
		runs, output := "-", "-" // only counted under a limit
		if v.RunsPerMinute != 0 {
			runs = ofLimit(v.Use.RunsPerMinute, v.RunsPerMinute)
		}
		if v.Output != 0 {
			output = byteSize(v.Use.Output) + "/" + v.Output.String()
		}
		t.add(text(v.App), text(ofLimit(v.Use.Jobs, v.Jobs)), text(runs), text(ofLimit(v.Use.Waiting, v.Waiting)),
			text(output))
	}

	return t
}

// ofLimit formats use and limit as "3/5", or "3" without a limit.
func ofLimit(used, most int64) string {
	if most == 0 {
		return fmt.Sprint(used)
	}
	return fmt.Sprintf("%d/%d", used, most)
}

// byteSize formats a number of bytes with three or four digits.
func byteSize(n int64) string {
	const units = "KMGTP"
	if n < 1024 {
		return fmt.Sprintf("%dB", n)
	}
	size, unit := float64(n)/1024, 0
	for ; size >= 1024 && unit < len(units)-1; unit++ {
		size /= 1024
	}
	return fmt.Sprintf("%.1f%ciB", size, units[unit])
}
