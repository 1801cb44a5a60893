package openapi

import (
	"bytes"
	"encoding/json"

	"go.yaml.in/yaml/v3"
)

// YAML writes a JSON text as YAML, with the fields in their order.
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

func yamlNode(d *json.Decoder) (*yaml.Node, error) {
	token, err := d.Token()
	if err != nil {
		return nil, err
	}
	n := new(yaml.Node)
	switch token := token.(type) {
	case json.Number:
		n.Kind, n.Value = yaml.ScalarNode, token.String()
		return n, nil
	case json.Delim:
		n.Kind = yaml.SequenceNode
		if token == '{' {
			n.Kind = yaml.MappingNode
		}
	default:
		return n, n.Encode(token) // quotes what a reader might take for something else than a text
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
