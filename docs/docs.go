// Package docs embeds the page about jobs. The API's reference takes its descriptions of fields from it.
package docs

import (
	_ "embed"
	"encoding/json"
	"regexp"
	"strings"
)

//go:embed jobs.md
var jobs string

// Field is the page's description of a field of a job.
type Field struct {
	Meaning  string
	Default  string            // empty: no default
	Required bool              // the field has no default and must be given
	Limits   string            // empty: no limits
	Values   []json.RawMessage // examples
	Preset   json.RawMessage   // the default, if it does not depend on other fields
}

// JobFields returns the fields of a job by their path, such as retry.attempts.
func JobFields() map[string]Field {
	out := map[string]Field{}
	var columns []string // of the current table of fields
	for line := range strings.Lines(jobs) {
		line = strings.TrimSpace(line)
		switch {
		case !strings.HasPrefix(line, "|"):
			columns = nil
		case strings.HasPrefix(line, "| field "):
			columns = cells(line)
		case columns != nil && !strings.HasPrefix(line, "|--"):
			path, f := field(columns, cells(line))
			out[path] = f
		}
	}
	return out
}

// bar separates cells, unless it is written as \|.
var bar = regexp.MustCompile(`(^|[^\\])\|`)

func cells(line string) []string {
	line = strings.TrimSuffix(strings.TrimPrefix(line, "|"), "|")
	parts := strings.Split(bar.ReplaceAllString(line, "$1\x00"), "\x00")
	for i := range parts {
		parts[i] = strings.ReplaceAll(strings.TrimSpace(parts[i]), `\|`, "|")
	}
	return parts
}

var (
	code = regexp.MustCompile("`([^`]+)`")
	link = regexp.MustCompile(`\[([^]]+)\]\([^)]*\)`)
)

func field(columns, cells []string) (path string, f Field) {
	path = strings.Trim(cells[0], "`")
	for i, name := range columns[:min(len(columns), len(cells))] {
		text := link.ReplaceAllString(cells[i], "$1")
		switch name {
		case "meaning":
			f.Meaning = text
		case "limits":
			f.Limits = text
		case "default":
			f.Required = text == "required"
			if f.Required || text == "none" || text == "–" {
				continue
			}
			f.Default = text
			if value := code.FindStringSubmatch(text); value != nil && text == value[0] && json.Valid([]byte(value[1])) {
				f.Preset = json.RawMessage(value[1])
			}
		case "example":
			for _, match := range code.FindAllStringSubmatch(cells[i], -1) {
				if v := valueAt("{"+match[1]+"}", strings.Split(path, ".")); v != nil {
					f.Values = append(f.Values, v)
				}
			}
		}
	}
	return path, f
}

// valueAt returns the value at a path of an object, or nil.
func valueAt(object string, path []string) json.RawMessage {
	value := json.RawMessage(object)
	for _, name := range path {
		var o map[string]json.RawMessage
		if json.Unmarshal(value, &o) != nil {
			return nil
		}
		value = o[name]
	}
	return value
}
