package api

import (
	"fmt"
	"maps"
	"slices"

	"go-crontab/job"
	"go-crontab/job/problem"
)

// paramFields reads the parameters of a job.
func paramFields(f *fields, to *map[string]job.Param) {
	if f.tooMany("params", job.MaxParams) {
		return
	}

	f.inner("params", func(f *fields) {
		params := map[string]job.Param{}
		for _, name := range slices.Sorted(maps.Keys(f.object)) {
			f.inner(name, func(f *fields) {
				var p job.Param
				f.text("type", &p.Type)
				f.value("default", &p.Default)
				f.enum("enum", &p.Enum)
				f.flag("required", &p.Required)
				f.text("secret", (*string)(&p.Secret))
				f.text("description", &p.Description)
				params[name] = p
			})
		}
		*to = params
	})
}

// tooMany reports whether an object has more than so many entries, and adds that as a mistake. Nothing
// has to look at each of them then.
func (f *fields) tooMany(name string, most int) bool {
	o, ok := f.object[name].(map[string]any)
	if !ok || len(o) <= most {
		return false
	}
	f.take(name)
	f.wrong(name, problem.TooMany, len(o), most)
	return true
}

// enum reads a list of values of a parameter.
func (f *fields) enum(name string, to *[]job.Value) {
	v, ok := f.take(name)
	if !ok {
		return
	}

	list, ok := v.([]any)
	if !ok {
		f.want(name, v, problem.WantValues)
		return
	}

	if len(list) > job.MaxParamEnum {
		f.wrong(name, problem.TooMany, len(list), job.MaxParamEnum)
		return
	}

	var out []job.Value
	for i, item := range list {
		value, ok := job.ValueOf(item)
		if !ok {
			f.want(fmt.Sprintf("%s[%d]", name, i), item, problem.WantValue)
			return
		}
		out = append(out, value)
	}
	*to = out
}
