package cli

import (
	"errors"
	"fmt"
	"strconv"

	"go-crontab/api"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// flagProblem rewrites an error of pflag for people: it suggests a flag for an unknown one, and says
// which values a flag takes. It returns other errors unchanged.
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

// wanted says which values a flag takes.
func wanted(e *pflag.InvalidValueError) string {
	if errors.Is(e, strconv.ErrRange) {
		return "the number is too large"
	}
	switch e.GetFlag().Value.Type() {
	case "int", "int64":
		return "want a whole number"
	case "float64":
		return "want a number"
	case "intSlice":
		return "want whole numbers, separated by commas"
	case "duration":
		return "want a duration with its unit, such as 90s, 10m or 24h (a day is 24h)"
	case "bool":
		return "want true or false"
	}
	return e.Unwrap().Error()
}
