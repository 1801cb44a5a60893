package edit

import (
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"go-crontab/job"
	"go-crontab/sql/trip"
)

// give checks the values of parameters against the definition of each job, and refuses the jobs
// whose definitions the values do not fit. It returns what each run is given; nil: nothing.
func give(done []Done, seen map[int64]*trip.Seen, params map[string]job.Value) (gifts []*job.Given) {
	for i := range done {
		d := &done[i]
		if d.Err != nil {
			continue
		}
		values, err := checkParams(seen[d.ID].Text, params)
		switch {
		case err != nil:
			d.Result, d.Err = job.BulkRefused, err
			continue
		case values == nil:
			continue
		}

		if gifts == nil {
			gifts = make([]*job.Given, len(done))
		}
		gifts[i] = &job.Given{Params: values}
	}
	return gifts
}

func checkParams(definition string, params map[string]job.Value) (map[string]job.Value, error) {
	spec, err := job.DecodeSpec(definition)
	if err != nil {
		return nil, err
	}
	return spec.CheckParams(params)
}

// withParams lists values of parameters for people, as " with a=1, b=2"; "" for none.
func withParams(params map[string]job.Value) string {
	var said []string
	for _, name := range slices.Sorted(maps.Keys(params)) {
		said = append(said, name+"="+string(params[name]))
	}
	if said == nil {
		return ""
	}
	return " with " + strings.Join(said, ", ")
}

// cutReason limits a reason to what the audit can hold.
func cutReason(s string) string {
	if utf8.RuneCountInString(s) <= job.MaxReason {
		return s
	}
	return string([]rune(s)[:job.MaxReason-1]) + "…"
}
