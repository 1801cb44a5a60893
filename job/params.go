package job

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"go-crontab/job/problem"
)

// Param is a parameter of a job. Each run has a value of the parameter: the value of its request,
// or the default.
type Param struct {
	Type        string  `json:"type,omitempty" enum:"string,integer,number,boolean,date" doc:"Its type. Default: string."`
	Default     Value   `json:"default,omitempty" doc:"The value of runs that were given none. For a date also today, yesterday, today-3d or today+1d: by the due time in the job's time zone."`
	Enum        []Value `json:"enum,omitempty" doc:"The allowed values."`
	Required    bool    `json:"required,omitempty" doc:"Whether each request must give it. Only for jobs without a schedule."`
	Secret      Secret  `json:"secret,omitempty" doc:"The secret that is its value. Nobody can give another one."`
	Description string  `json:"description,omitempty" doc:"What it is for."`
}

// The types of parameters.
const (
	ParamString  = "string"
	ParamInteger = "integer"
	ParamNumber  = "number"
	ParamBoolean = "boolean"
	ParamDate    = "date"
)

// ParamTypes lists the types.
var ParamTypes = []string{ParamString, ParamInteger, ParamNumber, ParamBoolean, ParamDate}

// Bounds of parameters.
const (
	MaxParams      = 32
	MaxParamEnum   = 64
	MaxParamValue  = 1 << 10 // bytes
	MaxParamValues = 8 << 10 // bytes of the names and values of a run
)

var paramName = regexp.MustCompile(`^[a-z][a-z0-9_]{0,31}$`)

// Value is a value of a parameter in JSON: a text in quotes, a number, true or false. "" means no
// value.
type Value string

// ValueOf converts a value from the JSON decoder. It returns false for a list, an object and null.
func ValueOf(v any) (Value, bool) {
	switch v := v.(type) {
	case string:
		return textValue(v), true
	case json.Number:
		return Value(v), true
	case bool:
		return Value(strconv.FormatBool(v)), true
	}
	return "", false
}

func textValue(s string) Value {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // a text always encodes
	return Value(strings.TrimSuffix(b.String(), "\n"))
}

// Text returns the value in the form that a command gets.
func (v Value) Text() string {
	if !strings.HasPrefix(string(v), `"`) {
		return string(v)
	}
	var s string
	_ = json.Unmarshal([]byte(v), &s)
	return s
}

// MarshalJSON returns the value itself.
func (v Value) MarshalJSON() ([]byte, error) {
	if v == "" {
		return []byte("null"), nil
	}
	return []byte(v), nil
}

// UnmarshalJSON reads a text, a number, true, false or null.
func (v *Value) UnmarshalJSON(b []byte) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var read any
	if err := d.Decode(&read); err != nil {
		return err
	}

	found, ok := ValueOf(read)
	if !ok && read != nil {
		return errors.New("a value of a parameter must be a text, a number, true or false")
	}
	*v = found
	return nil
}

// fit returns a value in the notation of the type. It returns false if the value has another type.
func (p *Param) fit(v Value) (Value, bool) {
	isText := strings.HasPrefix(string(v), `"`)
	switch p.Type {
	case ParamInteger:
		n, err := strconv.ParseInt(string(v), 10, 64)
		return Value(strconv.FormatInt(n, 10)), err == nil
	case ParamNumber:
		f, err := strconv.ParseFloat(string(v), 64)
		if err != nil {
			return v, false
		}
		text, err := json.Marshal(f)
		return Value(text), err == nil
	case ParamBoolean:
		return v, v == "true" || v == "false"
	case ParamDate:
		_, err := time.Parse(time.DateOnly, v.Text())
		return v, isText && err == nil
	}
	return v, isText
}

var relativeDay = regexp.MustCompile(`^(today|yesterday)(?:([+-][0-9]{1,5})d)?$`)

// daysFrom reads a default such as today-3d. The result is a number of days from the day of the due
// time.
func daysFrom(v Value) (days int, ok bool) {
	m := relativeDay.FindStringSubmatch(v.Text())
	if m == nil || m[1] == "yesterday" && m[2] != "" {
		return 0, false
	}
	days, _ = strconv.Atoi(m[2])
	if m[1] == "yesterday" {
		days = -1
	}
	return days, true
}

// wanted describes the allowed values.
func (p *Param) wanted() string {
	if len(p.Enum) > 0 {
		return "one of " + valueList(p.Enum)
	}
	switch p.Type {
	case ParamInteger:
		return "a whole number such as 5"
	case ParamNumber:
		return "a number such as 0.5"
	case ParamBoolean:
		return "true or false"
	case ParamDate:
		return `a date such as "2026-11-01"`
	}
	return `a text in quotes such as "all"`
}

// check returns a value in the notation of the type, or adds a problem.
func (p *Param) check(found *Problems, field string, v Value) Value {
	fitting, ok := p.fit(v)
	text := fitting.Text()
	switch {
	case !ok:
		found.Add(field, problem.ParamWant.Advise("give %s", p.wanted()), shorten(string(v)), p.Type)
	case len(text) > MaxParamValue:
		found.Add(field, problem.TooManyBytes, len(text), MaxParamValue)
	case strings.ContainsRune(text, 0) || !utf8.ValidString(text):
		found.Add(field, problem.NotText)
	case len(p.Enum) > 0 && !slices.Contains(p.Enum, fitting):
		found.Add(field, problem.ParamNotIn, shorten(string(v)), valueList(p.Enum))
	}
	return fitting
}

func valueList(values []Value) string {
	var said []string
	for _, v := range values {
		said = append(said, string(v))
	}
	return shorten(strings.Join(said, ", "))
}

func (s *Spec) paramsDefaults() {
	if len(s.Params) == 0 {
		s.Params = nil
		return
	}

	if len(s.Params) > MaxParams {
		return // validateParams refuses them all
	}

	s.Params = maps.Clone(s.Params) // the caller's stay as they are
	for name, p := range s.Params {
		if p.Type == "" && p.Secret == "" {
			p.Type = ParamString
		}
		if v, ok := p.fit(p.Default); ok {
			p.Default = v
		}
		p.Enum = slices.Clone(p.Enum)
		for i := range p.Enum {
			if v, ok := p.fit(p.Enum[i]); ok {
				p.Enum[i] = v
			}
		}
		s.Params[name] = p
	}
}

func (s *Spec) validateParams(found *Problems) {
	if len(s.Params) > MaxParams {
		found.Add("params", problem.TooMany, len(s.Params), MaxParams)
		return
	}

	bytes := 0
	for _, name := range slices.Sorted(maps.Keys(s.Params)) {
		p := s.Params[name]
		if !paramName.MatchString(name) {
			found.Add("params."+cutName(name), problem.ParamName, shorten(name))
			continue
		}
		bytes += len(name) + len(p.Default.Text())
		p.validate(found, "params."+name, s.Manual)
	}
	if bytes > MaxParamValues {
		found.Add("params", problem.ParamsLong, bytes, MaxParamValues)
	}
}

func (p *Param) validate(found *Problems, place string, manual bool) {
	checkText(found, place+".description", p.Description, MaxText)
	if p.Secret != "" {
		if err := p.Secret.Check(); err != nil {
			found.Put(place+".secret", problem.Of(err))
		}
		for _, f := range []struct {
			name string
			set  bool
		}{
			{"type", p.Type != "" && p.Type != ParamString}, {"default", p.Default != ""}, {"enum", len(p.Enum) > 0},
			{"required", p.Required},
		} {
			if f.set {
				found.Add(place+"."+f.name, problem.NotWith, "secret")
			}
		}
		return
	}

	if !slices.Contains(ParamTypes, p.Type) {
		found.Add(place+".type", problem.NotOneOf, shorten(p.Type), strings.Join(ParamTypes, ", "))
		return
	}
	if len(p.Enum) > MaxParamEnum {
		found.Add(place+".enum", problem.TooMany, len(p.Enum), MaxParamEnum)
		return
	}
	for i, v := range p.Enum {
		field := fmt.Sprintf("%s.enum[%d]", place, i)
		if p.check(found, field, v); slices.Contains(p.Enum[:i], v) {
			found.Add(field, problem.GivenAlready, shorten(string(v)))
		}
	}

	_, relative := daysFrom(p.Default)
	if p.Default != "" && (p.Type != ParamDate || !relative || len(p.Enum) > 0) {
		p.check(found, place+".default", p.Default)
	}

	switch {
	case p.Required && p.Default != "":
		found.Add(place+".required", problem.NotWith.Advise("leave out one of them"), "default")
	case p.Required && !manual:
		found.Add(place+".required", problem.ParamNobodyGives)
	}
}

// CheckParams checks the values that a request gives to a run of the job, and returns them in the
// notation of the parameters' types. The error is Problems.
func (s *Spec) CheckParams(given map[string]Value) (map[string]Value, error) {
	var found Problems
	if len(given) > MaxParams {
		found.Add("params", problem.TooMany, len(given), MaxParams)
		return nil, found
	}

	out, bytes := map[string]Value{}, 0
	for _, name := range slices.Sorted(maps.Keys(given)) {
		field, v := "params."+cutName(name), given[name]
		p, there := s.Params[name]
		switch {
		case !there:
			found.Put(field, s.noParam(name))
			continue
		case p.Secret != "":
			found.Add(field, problem.ParamIsSecret, p.Secret)
			continue
		}
		out[name] = p.check(&found, field, v)
		bytes += len(name) + len(out[name].Text())
	}

	for _, name := range slices.Sorted(maps.Keys(s.Params)) {
		if p := s.Params[name]; p.Required && given[name] == "" {
			found.Add("params."+name, problem.Missing.Advise("the job requires it: give %s", p.wanted()))
		}
	}
	if bytes > MaxParamValues {
		found.Add("params", problem.ParamsLong, bytes, MaxParamValues)
	}

	switch {
	case found != nil:
		return nil, found
	case len(out) == 0:
		return nil, nil
	}
	return out, nil
}

func (s *Spec) noParam(name string) problem.Text {
	names := slices.Sorted(maps.Keys(s.Params))
	near := Nearest(name, names)
	switch {
	case near != "":
		return problem.ParamUnknown.Advise("did you mean %s?", near).Of(shorten(name))
	case names == nil:
		return problem.ParamUnknown.Advise("it has none").Of(shorten(name))
	}
	return problem.ParamUnknown.Advise("it has %s", shorten(strings.Join(names, ", "))).Of(shorten(name))
}

// ParamsOf returns the values of a run's parameters: the given value, or else the default. Secrets
// and parameters without a value are left out. The definition may have changed since the request. A
// name that it no longer has is left out, and a value that no longer fits is an error.
func (s *Spec) ParamsOf(g *Given, due Micros) (map[string]Value, error) {
	if len(s.Params) == 0 {
		return nil, nil
	}

	var found Problems
	out := make(map[string]Value, len(s.Params))
	for _, name := range slices.Sorted(maps.Keys(s.Params)) {
		p := s.Params[name]
		if p.Secret != "" {
			continue
		}
		if g != nil && g.Params[name] != "" {
			out[name] = p.check(&found, "params."+name, g.Params[name])
			continue
		}

		days, relative := daysFrom(p.Default)
		switch {
		case p.Required:
			found.Add("params."+name, problem.Missing)
		case p.Type == ParamDate && relative:
			zone, err := LoadZone(s.Timezone)
			if err != nil {
				return nil, err
			}
			y, m, d := g.ScheduledAt(due).Time().In(zone).Date()
			day := time.Date(y, m, d+days, 0, 0, 0, 0, time.UTC)
			out[name] = textValue(day.Format(time.DateOnly))
		case p.Default != "":
			out[name] = p.Default
		}
	}

	if found != nil {
		return nil, Coded(ReasonParamInvalid, fmt.Errorf("the definition has changed since the request: %w", found))
	}
	return out, nil
}

// ParamSecrets returns the secrets that parameters have as values. The key is the parameter.
func (s *Spec) ParamSecrets() (out map[string]Secret) {
	for name, p := range s.Params {
		if p.Secret == "" {
			continue
		}
		if out == nil {
			out = map[string]Secret{}
		}
		out[name] = p.Secret
	}
	return out
}

// paramPrefix begins the placeholders of parameters.
const paramPrefix = "param."

// sampleParam returns a sample value of a parameter. A request is checked by filling it in with
// such values.
func (s *Spec) sampleParam(name string) (value string, secret Secret, ok bool) {
	p, ok := s.Params[name]
	switch p.Type {
	case ParamInteger, ParamNumber:
		return "1", p.Secret, ok
	case ParamBoolean:
		return "true", p.Secret, ok
	case ParamDate:
		return "2026-01-31", p.Secret, ok
	}
	return "x", p.Secret, ok
}
