package cli

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"go-crontab/api"
	"go-crontab/job"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// flagProblem rewrites an error of pflag for people. For an unknown flag it suggests a known one.
// For a wrong value it lists the values that the flag takes. Other errors stay unchanged.
func flagProblem(cmd *cobra.Command, err error) error {
	var (
		unknown *pflag.NotExistError
		invalid *pflag.InvalidValueError
	)

	switch {
	case errors.As(err, &unknown):
		if near := nearestFlag(cmd, unknown.GetSpecifiedName()); near != "" {
			return fmt.Errorf("%w; did you mean --%s?", err, near)
		}
	case errors.As(err, &invalid):
		return fmt.Errorf("--%s %q: %s", invalid.GetFlag().Name, invalid.GetValue(), wanted(invalid))
	}
	return err
}

// nearestFlag returns the flag that was probably meant, or "".
func nearestFlag(cmd *cobra.Command, name string) string {
	if len(name) < 2 { // a shorthand
		return ""
	}

	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, f.Name)
		}
	})
	return api.Nearest(name, names)
}

// wantDuration says how durations are written.
const wantDuration = "want a duration with its unit, such as 90s, 10m, 24h or 7d"

// durationValue is a flag with a duration.
type durationValue time.Duration

// durationVar adds a flag with a duration.
func durationVar(flags *pflag.FlagSet, d *time.Duration, name string, otherwise time.Duration, usage string) {
	*d = otherwise
	flags.Var((*durationValue)(d), name, usage)
}

func (d *durationValue) Type() string { return "duration" }

func (d *durationValue) String() string {
	if *d == 0 {
		return "" // so that help shows no default
	}
	return job.Duration(*d).String()
}

func (d *durationValue) Set(s string) error {
	v, err := job.ParseDuration(s)
	*d = durationValue(v)
	return err
}

// parseDuration reads the duration of a flag.
func parseDuration(flag, text string) (time.Duration, error) {
	d, err := job.ParseDuration(text)
	switch {
	case errors.Is(err, job.ErrTooLong):
		return 0, usageError("--%s %q %w", flag, text, err)
	case err != nil:
		return 0, usageError("--%s %q: %s", flag, text, wantDuration)
	}
	return d, nil
}

// parseEnd reads an end: a time, or a duration from now. A duration is sent as it is, because the
// server's clock counts.
func parseEnd(flag, s string, now time.Time) (string, error) {
	d, err := job.ParseDuration(strings.TrimPrefix(s, "+"))
	switch {
	case err == nil && d <= 0:
		return "", usageError("--%s %s lies in the past; write 2h or +2h for two hours from now", flag, s)
	case err == nil:
		return job.Duration(d).Text(), nil
	case errors.Is(err, job.ErrTooLong):
		return "", usageError("--%s %s %w", flag, s, err)
	}

	t, err := parseTime(s, now.Location(), now)
	if err != nil {
		return "", usageError("--%s %w, or a duration such as 2h or 7d", flag, err)
	}
	return t.Format(time.RFC3339Nano), nil
}

// wanted says which values a flag takes.
func wanted(e *pflag.InvalidValueError) string {
	switch {
	case errors.Is(e, strconv.ErrRange):
		return "the number is too large"
	case errors.Is(e, job.ErrTooLong):
		return job.ErrTooLong.Error()
	}
	switch e.GetFlag().Value.Type() {
	case "int", "int64":
		return "want a whole number"
	case "float64":
		return "want a number"
	case "intSlice":
		return "want whole numbers, separated by commas"
	case "duration":
		return wantDuration
	case "bool":
		return "want true or false"
	}
	return e.Unwrap().Error()
}
