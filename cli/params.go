package cli

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"go-crontab/job"

	"github.com/spf13/cobra"
)

// paramFlags is the flag of commands that give values of parameters to runs.
type paramFlags struct{ given []string }

func (f *paramFlags) flags(c *console, cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&f.given, "param", nil, "value of a parameter of the job, as name=value; may be repeated")
	_ = cmd.RegisterFlagCompletionFunc("param", completeParams(c))
}

// put puts the values into a request about the job.
func (f *paramFlags) put(j *jobView, body map[string]any) error {
	values := map[string]any{}
	for _, text := range f.given {
		name, value, ok := strings.Cut(text, "=")
		switch _, twice := values[name]; {
		case !ok || name == "":
			return usageError("--param %q: want name=value, such as --param day=2026-11-01", text)
		case twice:
			return usageError("--param %s is given twice", name)
		}
		values[name] = typed(j.Params[name].Type, value)
	}
	if len(values) > 0 {
		body["params"] = values
	}
	return nil
}

// typed returns a value as JSON of the parameter's type. A text that has not this type stays a
// text, and the server says what is wrong with it.
func typed(kind, value string) any {
	switch kind {
	case job.ParamInteger, job.ParamNumber:
		if value != "" && strings.Contains("-0123456789", value[:1]) && json.Valid([]byte(value)) {
			return json.Number(value)
		}
	case job.ParamBoolean:
		if value == "true" || value == "false" {
			return value == "true"
		}
	}
	return value
}

// completeParams completes the names of parameters. For some parameters it also completes values.
func completeParams(c *console) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		r, ok := completing(c, cmd)
		if !ok || len(args) == 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		j, _, err := findJob(cmd.Context(), r, args[0])
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}

		if name, _, chosen := strings.Cut(typed, "="); chosen {
			p := j.Params[name]
			values := p.Enum
			if p.Type == job.ParamBoolean {
				values = []job.Value{"true", "false"}
			}
			var out []cobra.Completion
			for _, v := range values {
				if word := name + "=" + v.Text(); strings.HasPrefix(word, typed) {
					out = append(out, word)
				}
			}
			return out, cobra.ShellCompDirectiveNoFileComp
		}

		var out []cobra.Completion
		for _, name := range slices.Sorted(maps.Keys(j.Params)) {
			if p := j.Params[name]; p.Secret == "" && strings.HasPrefix(name, typed) {
				out = append(out, cobra.CompletionWithDesc(name+"=", p.Description))
			}
		}
		return out, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	}
}

// valuesInFull lists values of parameters.
func valuesInFull(params map[string]job.Value) string {
	var said []string
	for _, name := range slices.Sorted(maps.Keys(params)) {
		said = append(said, name+"="+params[name].Text())
	}
	return strings.Join(said, ", ")
}

// paramsInFull lists the parameters of a job.
func paramsInFull(params map[string]job.Param) string {
	var said []string
	for _, name := range slices.Sorted(maps.Keys(params)) {
		switch p := params[name]; {
		case p.Secret != "":
			said = append(said, name+" (the secret "+string(p.Secret)+")")
		case p.Required:
			said = append(said, name+" ("+p.Type+", required)")
		case p.Default != "":
			said = append(said, name+" ("+p.Type+", "+p.Default.Text()+")")
		default:
			said = append(said, name+" ("+p.Type+")")
		}
	}
	return strings.Join(said, ", ")
}
