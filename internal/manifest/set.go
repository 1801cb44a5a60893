package manifest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Set is the content of several files.
type Set struct {
	lists map[string][]*Value // by the names in listNames
	given int                 // number of lists and single jobs read; an empty list counts
}

// listNames are the lists, in the order of writing.
var listNames = []string{"groups", "calendars", "channels", "rules", "retention", "pauses", "jobs"}

// Len returns the total number of objects.
func (s *Set) Len() (n int) {
	for _, list := range s.lists {
		n += len(list)
	}
	return n
}

// Jobs returns the number of jobs.
func (s *Set) Jobs() int { return len(s.lists["jobs"]) }

// Body returns a request body for POST /api/v1/apply, with the fields in more added.
func (s *Set) Body(more map[string]any) ([]byte, error) {
	body := map[string]any{"jobs": &Value{kind: isList}}
	for name, list := range s.lists {
		body[name] = &Value{kind: isList, items: list}
	}

	for name, v := range more {
		body[name] = v
	}

	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(body)
	return b.Bytes(), err
}

// Job returns the job of a set that contains nothing but one job.
func (s *Set) Job() (json.RawMessage, error) {
	if s.Len() != 1 || s.Jobs() != 1 {
		return nil, fmt.Errorf("want exactly one job, got %d objects", s.Len())
	}
	return s.lists["jobs"][0].MarshalJSON()
}

// Give sets a field in all jobs, and replaces existing values.
func (s *Set) Give(name string, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}

	for _, j := range s.lists["jobs"] {
		v, err := readJSON(j.at.File, text)
		if err != nil {
			return err
		}
		v[0].move(j.at)
		j.fields = slices.DeleteFunc(j.fields, func(f *Field) bool { return f.name == name })
		j.fields = append(j.fields, &Field{name, j.at, v[0]})
	}

	return nil
}

// Read adds the content of a file.
func (s *Set) Read(file string, text []byte) error {
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	read := readYAML
	if strings.HasSuffix(file, ".json") || looksLikeJSON(text) {
		read = readJSON
	}

	docs, err := read(file, text)
	if err != nil {
		return err
	}

	var faults Faults
	for _, d := range docs {
		faults = append(faults, s.add(d)...)
	}

	if faults != nil {
		return faults
	}
	return nil
}

// Add adds an object that was made from another source. Messages about it refer to the place at.
// list is a name in listNames.
func (s *Set) Add(list string, at Place, object json.RawMessage) error {
	values, err := readJSON(at.File, object)
	if err != nil {
		return err
	}

	if s.lists == nil {
		s.lists = map[string][]*Value{}
	}

	for _, v := range values {
		v.move(at)
		s.lists[list] = append(s.lists[list], v)
	}
	return nil
}

// move sets the place of a value and of all values in it.
func (v *Value) move(at Place) {
	v.at = at
	for _, item := range v.items {
		item.move(at)
	}
	for _, f := range v.fields {
		f.at = at
		f.value.move(at)
	}
}

// looksLikeJSON guesses the format of a text without a file name. Almost all JSON is valid YAML, so
// the guess mostly affects the wording of errors.
func looksLikeJSON(text []byte) bool {
	text = bytes.TrimLeft(text, " \t\r\n")
	return (bytes.HasPrefix(text, []byte("{")) || bytes.HasPrefix(text, []byte("["))) && json.Valid(text)
}

// add adds a document.
func (s *Set) add(d *Value) (faults Faults) {
	if s.lists == nil {
		s.lists = map[string][]*Value{}
	}

	switch d.kind {
	case isList:
		s.given++
		s.lists["jobs"] = append(s.lists["jobs"], d.items...)
		return nil
	case isScalar:
		return Faults{{
			d.at,
			"is not a job; want an object with the fields of a job, or with the lists groups, calendars, channels, rules, retention, pauses and jobs",
		}}
	}

	d.fields = slices.DeleteFunc(d.fields, func(f *Field) bool { return f.name == "$schema" }) // for editors
	if !d.isSet() {
		s.given++
		s.lists["jobs"] = append(s.lists["jobs"], d)
		return nil
	}

	for _, f := range d.fields {
		switch {
		case !slices.Contains(listNames, f.name):
			faults = append(faults, Fault{
				f.at, fmt.Sprintf("%s is unknown here; the lists are %s", f.name,
					strings.Join(listNames, ", ")),
			})
		case f.value.isNull():
		case f.value.kind != isList:
			faults = append(faults, Fault{f.at, fmt.Sprintf("%s is not a list; begin each item with - ", f.name)})
		default:
			s.given++
			s.lists[f.name] = append(s.lists[f.name], f.value.items...)
		}
	}

	return faults
}

// isSet reports whether an object has lists of objects. Then it is not a job. A job may have a
// field "calendars", too, but that is a list of names.
func (v *Value) isSet() bool {
	holdsList := func(f *Field) bool { return slices.Contains(listNames, f.name) && !f.value.hasTexts() }
	isName := func(f *Field) bool { return f.name == "name" }
	return slices.ContainsFunc(v.fields, holdsList) && !slices.ContainsFunc(v.fields, isName)
}

// hasTexts reports whether a list begins with a string or a number.
func (v *Value) hasTexts() bool { return len(v.items) > 0 && v.items[0].kind == isScalar }

// Check finds objects that are given twice. The server would report their positions in the
// request, which people do not see.
func (s *Set) Check() error {
	var faults Faults
	for _, list := range listNames {
		first := map[string]Place{}
		for _, v := range s.lists[list] {
			name := v.text("name")
			if list == "jobs" {
				app := v.text("app")
				if app == "" {
					app = "default"
				}
				name = app + "/" + name
			}
			if v.text("name") == "" {
				continue // the server reports that
			}

			if was, twice := first[name]; twice {
				faults = append(faults, Fault{v.at, fmt.Sprintf("%s is given already, at %s", name, was)})
				continue
			}

			first[name] = v.at
		}
	}

	if faults != nil {
		return faults
	}

	return nil
}

var (
	listed   = regexp.MustCompile(`^(groups|calendars|channels|rules|retention|pauses|jobs)\[(\d+)\]`)
	anywhere = regexp.MustCompile(`\b(groups|calendars|channels|rules|retention|pauses|jobs)\[(\d+)\]`)
)

// Find returns the place of a request field such as jobs[3].schedule, and the field's name in the
// file. If the file does not have the field, Find returns the place of the object.
func (s *Set) Find(field string) (at Place, name string, ok bool) {
	m := listed.FindStringSubmatch(field)
	if m == nil {
		return at, "", false
	}
	i, err := strconv.Atoi(m[2])
	if list := s.lists[m[1]]; err == nil && i < len(list) {
		rest := field[len(m[0]):]
		return list[i].find(rest), strings.TrimPrefix(rest, "."), true
	}
	return at, "", false
}

// Explain replaces request fields in a message by places in files.
func (s *Set) Explain(message string) string {
	return anywhere.ReplaceAllStringFunc(message, func(field string) string {
		if at, _, ok := s.Find(field); ok {
			return at.String()
		}
		return field
	})
}

// find follows a path as far as possible.
func (v *Value) find(path string) Place {
	at := v.at
	for path != "" {
		next, value, rest := v.step(path)
		if value == nil {
			return at
		}
		at, v, path = next, value, rest
	}
	return at
}

// step follows the first part of a path. Names may contain dots: the longest existing name wins.
func (v *Value) step(path string) (at Place, value *Value, rest string) {
	if strings.HasPrefix(path, "[") {
		digits, after, found := strings.Cut(path[1:], "]")
		i, err := strconv.Atoi(digits)
		if !found || err != nil || i >= len(v.items) {
			return at, nil, ""
		}
		return v.items[i].at, v.items[i], after
	}

	path = strings.TrimPrefix(path, ".")
	best := -1
	for _, f := range v.fields {
		after, found := strings.CutPrefix(path, f.name)
		if found && len(f.name) > best && (after == "" || after[0] == '.' || after[0] == '[') {
			best, at, value, rest = len(f.name), f.at, f.value, after
		}
	}

	return at, value, rest
}
