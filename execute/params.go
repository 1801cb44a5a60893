package execute

import (
	"maps"
	"slices"
	"strings"

	"go-crontab/job"
)

// paramTexts returns the values of parameters as commands get them.
func paramTexts(params map[string]job.Value) map[string]string {
	if params == nil {
		return nil
	}
	out := make(map[string]string, len(params))
	for name, v := range params {
		out[name] = v.Text()
	}
	return out
}

// param returns the value of a parameter for a request.
func (a *Attempt) param(name string) (value string, secret job.Secret, ok bool) {
	if secret, ok = a.secretParams[name]; ok {
		return "", secret, true
	}
	// A parameter without a value is empty. Validation has already checked that the name exists.
	return a.Params[name], "", true
}

// fillParams adds the parameters whose values are secrets to the other values.
func (a *Attempt) fillParams() error {
	if a.secretParams == nil {
		return nil
	}

	filled := maps.Clone(a.Params)
	if filled == nil {
		filled = map[string]string{}
	}
	for name, secret := range a.secretParams {
		value, err := a.known.value(secret)
		if err != nil {
			return err
		}
		filled[name] = value
	}
	a.Params = filled
	return nil
}

// withParams appends the variables of the parameters.
func withParams(a Attempt, env []string) []string {
	for _, name := range slices.Sorted(maps.Keys(a.Params)) {
		env = append(slices.Clip(env), reserved+"PARAM_"+strings.ToUpper(name)+"="+a.Params[name])
	}
	return env
}
