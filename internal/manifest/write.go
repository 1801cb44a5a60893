package manifest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// Objects are the objects to write, as JSON, in order.
type Objects struct {
	Groups    []json.RawMessage `json:"groups,omitempty"`
	Calendars []json.RawMessage `json:"calendars,omitempty"`
	Channels  []json.RawMessage `json:"channels,omitempty"`
	Rules     []json.RawMessage `json:"rules,omitempty"`
	Retention []json.RawMessage `json:"retention,omitempty"`
	Pauses    []json.RawMessage `json:"pauses,omitempty"`
	Jobs      []json.RawMessage `json:"jobs"`
}

// WriteJSON writes objects as a JSON file. Its output is deterministic.
func WriteJSON(w io.Writer, o *Objects) error {
	if o.Jobs == nil {
		o.Jobs = []json.RawMessage{}
	}

	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(o); err != nil {
		return err
	}

	_, err := w.Write(text.Bytes())
	return err
}

// perDocument is the number of jobs per YAML document. Documents are written and read one at a
// time, which bounds the memory.
const perDocument = 1000

// WriteYAML writes objects as a YAML file, with many jobs split into several documents. Its output
// is deterministic, and verified by reading it back.
func WriteYAML(w io.Writer, o *Objects) error {
	first := *o
	first.Jobs = append([]json.RawMessage{}, o.Jobs[:min(len(o.Jobs), perDocument)]...)
	if err := writeDocument(w, &first); err != nil {
		return err
	}

	for jobs := range slices.Chunk(o.Jobs[len(first.Jobs):], perDocument) {
		if _, err := io.WriteString(w, "\n---\n"); err != nil {
			return err
		}
		if err := writeDocument(w, &Objects{Jobs: jobs}); err != nil {
			return err
		}
	}

	return nil
}

func writeDocument(w io.Writer, o *Objects) error {
	text, err := json.Marshal(o)
	if err != nil {
		return err
	}
	out, err := YAML(text)
	if err != nil {
		return err
	}
	_, err = w.Write(spaced(out))
	return err
}

// spaced puts an empty line between the objects of a list. Each object begins with two spaces and
// a dash. No line of a multi-line string begins in this way. An empty line after a string could
// change the string if it ends with empty lines, but such a string is never written as a block.
func spaced(text []byte) []byte {
	var out bytes.Buffer
	first := true
	for line := range bytes.Lines(text) {
		begins := bytes.HasPrefix(line, []byte("  - "))
		if begins && !first {
			out.WriteByte('\n')
		}
		if begins {
			first = false
		}
		if line[0] != ' ' {
			first = true
		}
		out.Write(line)
	}

	return out.Bytes()
}

// YAML converts JSON to YAML. It keeps the order of fields, writes multi-line strings as blocks,
// and verifies its output by reading it back.
func YAML(text []byte) ([]byte, error) {
	for _, quoted := range []bool{false, true} {
		out, err := encodeYAML(text, quoted)
		if err != nil {
			return nil, err
		}
		if back, err := readYAML("", out); err == nil && len(back) == 1 && isSame(back[0], text) {
			return out, nil
		}
	}
	return nil, fmt.Errorf("the written file cannot be read back")
}

// isSame reports whether a value equals a JSON text.
func isSame(v *Value, text []byte) bool {
	is, err := v.MarshalJSON()
	if err != nil {
		return false
	}
	var a, b bytes.Buffer
	var x, y any
	if json.Unmarshal(is, &x) != nil || json.Unmarshal(text, &y) != nil {
		return false
	}
	return json.NewEncoder(&a).Encode(x) == nil && json.NewEncoder(&b).Encode(y) == nil && a.String() == b.String()
}

func encodeYAML(text []byte, quoted bool) ([]byte, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	n, err := yamlNode(d, quoted)
	if err != nil {
		return nil, err
	}

	var out bytes.Buffer
	e := yaml.NewEncoder(&out)
	e.SetIndent(2)
	if err := e.Encode(n); err != nil {
		return nil, err
	}
	return out.Bytes(), e.Close()
}

// yamlNode reads a JSON value and keeps the order of its fields.
func yamlNode(d *json.Decoder, quoted bool) (*yaml.Node, error) {
	token, err := d.Token()
	if err != nil {
		return nil, err
	}

	n := &yaml.Node{Kind: yaml.ScalarNode}
	switch token := token.(type) {
	case nil:
		n.Tag, n.Value = "!!null", "null"
		return n, nil
	case bool:
		n.Tag, n.Value = "!!bool", fmt.Sprint(token)
		return n, nil
	case json.Number:
		n.Value = token.String()
		n.Tag = n.ShortTag()
		return n, nil
	case string:
		if n.Style = styleOf(token, quoted); n.Style == 0 {
			return n, n.Encode(token) // adds quotes if a parser would misread it
		}
		n.Tag, n.Value = "!!str", token
		return n, nil
	case json.Delim:
		n.Kind = yaml.SequenceNode
		if token == '{' {
			n.Kind = yaml.MappingNode
		}
	}

	for d.More() { // names and values of an object alternate
		inner, err := yamlNode(d, quoted)
		if err != nil {
			return nil, err
		}
		n.Content = append(n.Content, inner)
	}

	if len(n.Content) == 0 {
		n.Style = yaml.FlowStyle
	}

	_, err = d.Token()
	return n, err
}

// styleOf chooses the style of a string: a block if people and all parsers read it correctly.
func styleOf(s string, quoted bool) yaml.Style {
	switch {
	case !strings.Contains(s, "\n") && !quoted && plain(s):
		return 0
	case !quoted && block(s):
		return yaml.LiteralStyle
	}
	return yaml.DoubleQuotedStyle
}

func plain(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) })
}

func block(s string) bool {
	if strings.HasSuffix(s, "\n\n") || strings.HasPrefix(s, "\n") || strings.HasPrefix(s, " ") ||
		strings.Trim(s, "\n") == "" {
		return false
	}

	for line := range strings.Lines(s) {
		line = strings.TrimSuffix(line, "\n")
		if strings.HasSuffix(line, " ") ||
			strings.ContainsFunc(line, func(r rune) bool { return !unicode.IsPrint(r) }) {
			return false
		}
	}

	return true
}
