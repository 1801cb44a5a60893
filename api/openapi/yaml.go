package openapi

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// YAML converts JSON to YAML. The fields keep their order.
func YAML(text []byte) ([]byte, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	node, err := yamlNode(d)
	if err != nil {
		return nil, err
	}

	var out bytes.Buffer
	e := yaml.NewEncoder(&out)
	e.SetIndent(2)
	if err := e.Encode(node); err != nil {
		return nil, err
	}
	return out.Bytes(), e.Close()
}

// oldWords are texts that readers of YAML 1.1 take for booleans.
var oldWords = []string{"y", "n", "yes", "no", "on", "off"}

func yamlNode(d *json.Decoder) (*yaml.Node, error) {
	token, err := d.Token()
	if err != nil {
		return nil, err
	}

	n := &yaml.Node{Kind: yaml.ScalarNode}
	switch token := token.(type) {
	case string:
		// The encoder quotes only texts that YAML 1.2 would not read as texts. YAML 1.1 needs more
		// quotes.
		n.Tag, n.Value = "!!str", token
		if slices.Contains(oldWords, strings.ToLower(token)) {
			n.Style = yaml.DoubleQuotedStyle
		}
		return n, nil
	case json.Number:
		n.Value = token.String()
		return n, nil
	case json.Delim:
		n.Kind = yaml.SequenceNode
		if token == '{' {
			n.Kind = yaml.MappingNode
		}
	default: // true, false, null
		return n, n.Encode(token)
	}

	for d.More() { // names and values of an object alternate
		inner, err := yamlNode(d)
		if err != nil {
			return nil, err
		}
		n.Content = append(n.Content, inner)
	}

	_, err = d.Token()
	return n, err
}
