package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Limits of a file after its aliases are expanded.
const (
	maxDepth  = 64 // holds without aliases, too
	maxValues = 1_000_000
	maxBytes  = 64 << 20
)

// readYAML reads all documents of a file.
func readYAML(file string, text []byte) ([]*Value, error) {
	d := yaml.NewDecoder(bytes.NewReader(text))
	r := &yamlReader{file: file, open: map[*yaml.Node]bool{}}
	var out []*Value
	for {
		var doc yaml.Node
		err := d.Decode(&doc)
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, r.syntax(err)
		}
		if len(doc.Content) == 0 {
			continue
		}

		v, err := r.value(doc.Content[0], 0)
		if err != nil {
			return nil, err
		}
		if !v.isNull() { // null, as between two lines of ---, is no value
			out = append(out, v)
		}
	}
}

type yamlReader struct {
	file   string
	values int
	bytes  int
	open   map[*yaml.Node]bool // aliases being resolved
}

var atLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?`)

// syntax turns a parser's error into faults with a line.
func (r *yamlReader) syntax(err error) error {
	text := strings.TrimPrefix(err.Error(), "yaml: unmarshal errors:\n  ")
	at := Place{File: r.file}
	if m := atLine.FindStringSubmatch(text); m != nil {
		at.Line, _ = strconv.Atoi(m[1])
		text = text[len(m[0]):]
	}
	for said, plainly := range yamlFaults {
		if strings.HasPrefix(text, said) {
			text = plainly
		}
	}
	return Faults{{at, "is not YAML: " + text}}
}

// yamlFaults are the parser's messages about common mistakes, in words for people.
var yamlFaults = map[string]string{
	"did not find expected node content":             "a value is missing, or a bracket is not closed",
	"did not find expected ',' or ']'":               "a list that begins with [ is not closed by ]",
	"did not find expected ',' or '}'":               "an object that begins with { is not closed by }",
	"found unexpected end of stream":                 "a quotation mark is not closed",
	"found character that cannot start any token":    "a text begins with a tab, @ or `; indent with spaces, and quote such a text",
	"mapping values are not allowed in this context": "a colon does not belong here; check the indentation, or quote the text",
}

func (r *yamlReader) place(n *yaml.Node) Place { return Place{r.file, n.Line, n.Column} }

func (r *yamlReader) fault(n *yaml.Node, format string, args ...any) error {
	return Faults{{r.place(n), fmt.Sprintf(format, args...)}}
}

func (r *yamlReader) value(n *yaml.Node, depth int) (*Value, error) {
	if len(r.open) > 0 { // without an alias, the size of the file is the bound
		r.values++
		r.bytes += len(n.Value)
	}

	switch {
	case depth > maxDepth:
		return nil, r.fault(n, "is nested more than %d levels deep", maxDepth)
	case r.values > maxValues || r.bytes > maxBytes:
		return nil, r.fault(n, "the file is too large: its aliases expand to too many values")
	}

	v := &Value{at: r.place(n)}
	switch n.Kind {
	case yaml.AliasNode:
		if r.open[n.Alias] {
			return nil, r.fault(n, "the alias *%s contains itself", n.Value)
		}
		r.open[n.Alias] = true
		defer delete(r.open, n.Alias)
		return r.value(n.Alias, depth+1)
	case yaml.SequenceNode:
		v.kind = isList
		for _, c := range n.Content {
			item, err := r.value(c, depth+1)
			if err != nil {
				return nil, err
			}
			v.items = append(v.items, item)
		}
		return v, r.checkTag(n, "!!seq")
	case yaml.MappingNode:
		v.kind = isObject
		if err := r.fields(v, n, depth); err != nil {
			return nil, err
		}
		return v, r.checkTag(n, "!!map")
	}

	var err error
	v.scalar, err = r.scalar(n)
	return v, err
}

func (r *yamlReader) checkTag(n *yaml.Node, is string) error {
	if n.Style&yaml.TaggedStyle != 0 && n.ShortTag() != is {
		return r.fault(n, "the tag %s is not supported; remove it", n.Tag)
	}
	return nil
}

// fields reads an object. Fields that << merges in follow the object's own fields.
func (r *yamlReader) fields(v *Value, n *yaml.Node, depth int) error {
	first := map[string]Place{}
	var merged []*Value
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, content := n.Content[i], n.Content[i+1]
		if key.Kind == yaml.AliasNode {
			key = key.Alias
		}
		if key.Kind != yaml.ScalarNode {
			return r.fault(n.Content[i], "a field name cannot be a list or an object")
		}

		value, err := r.value(content, depth+1)
		if err != nil {
			return err
		}

		if key.ShortTag() == "!!merge" {
			more := []*Value{value}
			if value.kind == isList {
				more = value.items
			}
			for _, m := range more {
				if m.kind != isObject {
					return r.fault(key, "only objects can be merged")
				}
			}
			merged = append(merged, more...)
			continue
		}

		at := r.place(n.Content[i])
		if was, twice := first[key.Value]; twice {
			return r.fault(n.Content[i], "%s is given twice; the first is in line %d", key.Value, was.Line)
		}

		first[key.Value] = at
		v.fields = append(v.fields, &Field{key.Value, at, value})
	}

	for _, m := range merged {
		for _, f := range m.fields {
			if _, there := first[f.name]; !there {
				first[f.name] = f.at
				v.fields = append(v.fields, f)
			}
		}
	}

	return nil
}

// scalar reads a scalar. Dates and times remain strings.
func (r *yamlReader) scalar(n *yaml.Node) (any, error) {
	switch tag := n.ShortTag(); tag {
	case "!!str":
		return n.Value, nil
	case "!!timestamp":
		if n.Style&yaml.TaggedStyle == 0 {
			return n.Value, nil
		}
	case "!!null":
		return nil, nil
	case "!!merge":
		return n.Value, nil
	case "!!bool", "!!int", "!!float":
		var v any
		if err := n.Decode(&v); err != nil {
			return nil, r.fault(n, "%s cannot be read: %v", n.Value, err)
		}
		if b, ok := v.(bool); ok {
			return b, nil
		}
		text, err := json.Marshal(v)
		if err != nil {
			return nil, r.fault(n, "%s is not a number in JSON", n.Value)
		}
		return json.Number(text), nil
	}
	return nil, r.fault(n, "the tag %s is not supported; remove it", n.Tag)
}
